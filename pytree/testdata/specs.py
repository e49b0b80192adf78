# Writes specs.jsonl: python specs.py > specs.jsonl (PyTorch 2.15).
import torch,json,collections,dataclasses
import torch.utils._pytree as py
from typing import NamedTuple,Any
from collections import OrderedDict,defaultdict,deque
P=collections.namedtuple('P','a b'); py._register_namedtuple(P,serialized_type_name='my.P')
@dataclasses.dataclass
class D: 
    x:Any; y:Any; z:Any
torch.export.register_dataclass(D,serialized_type_name='my.D')
d=defaultdict(list); d['k']=1; d[3]=2
vals=[1,(1,2),[1,[2]],{'b':1,'a':(2,3)},{1:2,None:3,True:4,2.5:3,"it's":5,'q"':1},OrderedDict([('z',1),('a',2)]),d,deque([1,2],maxlen=5),P(1,(2,)),D(1,None,[2,3]),torch.Size([1,2]),torch.ones(3).sort(),(),[],{},None,slice(1,2), torch.fx.immutable_collections.immutable_list([1,2]), torch.fx.immutable_collections.immutable_dict({'a':1}),{(1,'a'):2},{'é\n':1}]
for v in vals:
    s=py.tree_structure(v)
    j = py.treespec_dumps(s)
    print(json.dumps({"Text": j, "Repr": repr(s), "Paths": [py.keystr(p) for p,_ in py.tree_flatten_with_path(v)[0]]}))

