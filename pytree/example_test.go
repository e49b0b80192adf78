package pytree_test

import (
	"fmt"

	"github.com/pt2go/pt2/pytree"
)

func ExampleSpec_Flatten() {
	s, err := pytree.Parse(`[1, {"type": "builtins.dict", "context": "[\"ids\", \"scale\"]", "children_spec": [
		{"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}]`, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Flatten(map[string]any{"scale": 0.5, "ids": 7}))
	fmt.Println(s.Flatten(struct {
		Scale float32
		IDs   int
	}{0.5, 7}))
	// Output:
	// [7 0.5] <nil>
	// [7 0.5] <nil>
}
