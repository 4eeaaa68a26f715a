// Reads the health of objects as GitOps tools do: kstatus (Flux, kpt) and the Lua of Argo CD.
//
// Reads {"script": "…", "objects": [{…}]} on stdin and writes for each object {"kstatus": {"status", "message"}, "argo": {…}}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type answer struct {
	Kstatus health `json:"kstatus"`
	Argo    health `json:"argo"`
}

// Argo CD ends a script after a second.
const scriptTimeout = time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var input struct {
		Script  string            `json:"script"`
		Objects []json.RawMessage `json:"objects"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		return err
	}
	answers := make([]answer, 0, len(input.Objects))
	for _, raw := range input.Objects {
		// Integers become int64, as for objects that clients of Kubernetes read.
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			return err
		}
		result, err := status.Compute(object)
		if err != nil {
			return err
		}
		argo, err := argoHealth(input.Script, object)
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		answers = append(answers, answer{Kstatus: health{result.Status.String(), result.Message}, Argo: argo})
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

// argoHealth runs a health script with what Argo CD gives one: the object as the global obj, and the libraries base, table and
// package. There is no string library. Argo CD asks no script about an object that is being deleted.
func argoHealth(script string, object *unstructured.Unstructured) (health, error) {
	if object.GetDeletionTimestamp() != nil {
		return health{"Progressing", "Pending deletion"}, nil
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, open := range []lua.LGFunction{lua.OpenPackage, lua.OpenBase, lua.OpenTable} {
		state.Push(state.NewFunction(open))
		state.Call(0, 0)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scriptTimeout)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", luaValue(state, object.Object))
	if err := state.DoString(script); err != nil {
		return health{}, err
	}
	table, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		return health{}, fmt.Errorf("the script returned %s, not a table", state.Get(-1).Type())
	}
	return health{lua.LVAsString(table.RawGetString("status")), lua.LVAsString(table.RawGetString("message"))}, nil
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for name, field := range value {
			table.RawSetString(name, luaValue(state, field))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, element := range value {
			table.Append(luaValue(state, element))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	}
	return lua.LNil
}
