package passes

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
)

// DeviceMap says where things go: from device texts such as "cuda:0" or "cpu" to others. Devices that it does not name stay. The key
// "*" stands for every device.
type DeviceMap map[string]string

// ToDevice moves everything to one device.
func ToDevice(device string) DeviceMap { return DeviceMap{"*": device} }

// move gives the new device.
func (m DeviceMap) move(d aten.Device) (aten.Device, error) {
	text := d.Type
	if d.Index >= 0 {
		text += ":" + strconv.Itoa(d.Index)
	}
	to, ok := m[text]
	if !ok {
		if to, ok = m["*"]; !ok {
			return d, nil
		}
	}
	return ParseDevice(to)
}

// ParseDevice reads "cpu", "cuda" or "cuda:1".
func ParseDevice(text string) (aten.Device, error) {
	kind, index, numbered := strings.Cut(text, ":")
	d := aten.Device{Type: kind, Index: -1}
	if numbered {
		n, err := strconv.Atoi(index)
		if err != nil || n < 0 || n > 127 {
			return d, &export.ArgumentError{Name: "device", Got: strconv.Quote(text), Want: "a device such as \"cpu\" or \"cuda:1\""}
		}
		d.Index = n
	}
	switch kind {
	case "cpu", "cuda", "mps", "xpu", "hpu", "mtia", "xla", "meta", "privateuseone":
		return d, nil
	}
	return d, &export.ArgumentError{Name: "device", Got: strconv.Quote(text), Want: "a device such as \"cpu\" or \"cuda:1\""}
}

// MoveToDevice is PyTorch's move_to_device_pass, but gives a new program: weights, tensor constants, every device argument of every
// node, subgraphs included, and all metadata say the new device. The bytes of weights and example inputs stay where they are, in the
// CPU's memory; example inputs are saved as CPU tensors.
func MoveToDevice(p *export.Program, m DeviceMap) (*export.Program, error) {
	e := p.Edit()
	parts := e.Parts()
	for _, to := range m {
		if _, err := ParseDevice(to); err != nil {
			return nil, err
		}
	}
	devices := map[string]aten.Device{}
	place := func(name string) (err error) {
		d, known := parts.Devices[name]
		if !known {
			d = aten.Device{Type: "cpu", Index: -1}
		}
		if d, err = m.move(d); d.Type != "cpu" || d.Index >= 0 {
			devices[name] = d
		}
		return err
	}
	for name := range parts.State.All() {
		if err := place(name); err != nil {
			return nil, err
		}
	}
	for name, c := range parts.Constants.All() {
		if _, object := c.(*export.CustomObject); object {
			continue
		}
		if err := place(name); err != nil {
			return nil, err
		}
	}
	parts.Devices = devices
	if len(devices) > 0 || len(p.Parts().Devices) > 0 {
		parts.ExampleRecord = nil // tensors of the recorded file may lie on the old device
	}
	blank := maps.Clone(parts.Blank)
	for name, t := range blank {
		moved := *t
		moved.Device = devices[name]
		if moved.Device.Type == "" {
			moved.Device = aten.Device{Type: "cpu", Index: -1}
		}
		blank[name] = &moved
	}
	parts.Blank = blank
	if err := m.moveGraph(e.Graph()); err != nil {
		return nil, err
	}
	return e.Program()
}

func (m DeviceMap) moveGraph(g *export.Graph) error {
	for _, v := range g.Values {
		if v.Tensor == nil {
			continue
		}
		t := *v.Tensor
		var err error
		if t.Device, err = m.move(t.Device); err != nil {
			return err
		}
		v.Tensor = &t
	}
	for _, n := range g.Nodes {
		for i := range n.Args {
			a := &n.Args[i]
			switch x := a.Value.(type) {
			case aten.Device:
				d, err := m.move(x)
				if err != nil {
					return fmt.Errorf("passes: node %s: %w", n.Name, err)
				}
				a.Value = d
			case *export.Subgraph:
				if err := m.moveGraph(x.Graph); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
