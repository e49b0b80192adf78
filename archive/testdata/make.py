"""Makes the files of this folder with PyTorch's and Python's own writers."""
import io, zipfile
from torch.export.pt2_archive._package import PT2ArchiveWriter

b = io.BytesIO()
with PT2ArchiveWriter(b) as w:
    w.write_string("models/model.json", "{}")
    w.write_bytes("data/weights/weight_0", bytes(range(100)))
    w.write_bytes("data/weights/weight_1", b"")
    w.write_string("extra/é", "é")
open("writer.pt2", "wb").write(b.getvalue())

with zipfile.ZipFile("legacy.pt2", "w") as z:  # the layout of PyTorch 2.1 to 2.7: no root folder
    z.writestr("serialized_exported_program.json", "{}")
    z.writestr("version", "8.2")
    z.writestr("extra_files/a/b", "text" * 100, zipfile.ZIP_DEFLATED)
    z.writestr("extra_files/empty", "")
