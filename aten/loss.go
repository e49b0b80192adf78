package aten

// lossOps are loss functions. reduction: 0 none, 1 mean, 2 sum.
var lossOps = []Op{
	{Schema: "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(reduceLoss(b, b.Call("square", b.Call("sub.Tensor", a.Tensor(0), a.Tensor(1))), a.I64(2)))
	}},
	{Schema: "l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(reduceLoss(b, b.Call("abs", b.Call("sub.Tensor", a.Tensor(0), a.Tensor(1))), a.I64(2)))
	}},
	{Schema: "smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		d := b.Call("abs", b.Call("sub.Tensor", a.Tensor(0), a.Tensor(1)))
		beta := a.Float(3)
		if beta == 0 {
			return One(reduceLoss(b, d, a.I64(2)))
		}
		small := b.Call("mul.Scalar", b.Call("square", d), FloatS(0.5/beta))
		return One(reduceLoss(b, b.Call("where.self", b.Call("lt.Scalar", d, FloatS(beta)), small, b.Call("sub.Scalar", d, FloatS(0.5*beta))), a.I64(2)))
	}},
	{Schema: "huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		d := b.Call("abs", b.Call("sub.Tensor", a.Tensor(0), a.Tensor(1)))
		delta := a.Float(3)
		small := b.Call("mul.Scalar", b.Call("square", d), FloatS(0.5))
		large := b.Call("mul.Scalar", b.Call("sub.Scalar", d, FloatS(0.5*delta)), FloatS(delta))
		return One(reduceLoss(b, b.Call("where.self", b.Call("le.Scalar", d, FloatS(delta)), small, large), a.I64(2)))
	}},
	{Schema: "kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, t := a.Tensor(0), a.Tensor(1)
		var l *Value
		if a.Bool(3) {
			l = b.Call("mul.Tensor", b.Call("exp", t), b.Call("sub.Tensor", t, x))
		} else {
			l = b.Call("sub.Tensor", b.Call("xlogy.Tensor", t, t), b.Call("mul.Tensor", t, x))
		}
		return One(reduceLoss(b, l, a.I64(2)))
	}},
	{Schema: "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=Mean) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, t := a.Tensor(0), a.Tensor(1)
		ls := b.Call("log_sigmoid", x)
		l := b.Call("mul.Tensor", b.Call("rsub.Scalar", t, 1), x)
		if p := a.OptTensor(3); p != nil {
			w := b.Call("add.Scalar", b.Call("mul.Tensor", b.Call("sub.Scalar", p, 1), t), 1)
			l = b.Call("sub.Tensor", l, b.Call("mul.Tensor", w, ls))
		} else {
			l = b.Call("sub.Tensor", l, ls)
		}
		if w := a.OptTensor(2); w != nil {
			l = b.Call("mul.Tensor", l, w)
		}
		return One(reduceLoss(b, l, a.I64(4)))
	}},
	{Schema: "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(reduceLoss(b, b.Call("log1p", b.Call("exp", b.Call("neg", b.Call("mul.Tensor", a.Tensor(0), a.Tensor(1))))), a.I64(2)))
	}},
	{Schema: "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		d := b.Call("mul.Tensor", b.Call("neg", a.Tensor(2)), b.Call("sub.Tensor", a.Tensor(0), a.Tensor(1)))
		return One(reduceLoss(b, b.Call("clamp_min", b.Call("add.Scalar", d, FloatS(a.Float(3))), 0), a.I64(4)))
	}},
}

func reduceLoss(b *Build, l *Value, reduction int64) *Value {
	switch reduction {
	case 1:
		return b.Call("mean", l)
	case 2:
		return b.Call("sum", l)
	}
	return l
}
