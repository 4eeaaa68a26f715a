// cel decides the CEL expressions of its settings with the libraries of
// Kubernetes' API servers. It stands for the largest published policies.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"example.com/corpus/command"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	kubewarden "github.com/kubewarden/policy-sdk-go"
	"github.com/kubewarden/policy-sdk-go/pkg/capabilities"
	"github.com/kubewarden/policy-sdk-go/pkg/capabilities/kubernetes"
	"github.com/kubewarden/policy-sdk-go/protocol"
	"k8s.io/apiserver/pkg/cel/library"
)

// Settings are fields of a ValidatingAdmissionPolicy's spec.
type Settings struct {
	Variables   []Variable   `json:"variables"`
	Validations []Validation `json:"validations"`
}

// Variable is an expression with a name.
type Variable struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// Validation is an expression that must be true.
type Validation struct {
	Expression        string `json:"expression"`
	Message           string `json:"message"`
	MessageExpression string `json:"messageExpression"`
}

const (
	namespaceVariable = "namespaceObject"
	costLimit         = 10_000_000
)

// policy is what the settings compile to.
type policy struct {
	variables   []cel.Program
	validations []cel.Program
	messages    []cel.Program
	settings    Settings
}

func main() {
	command.Main(command.Policy[Settings]{
		CheckSettings: func(settings Settings) error {
			_, err := compile(settings)
			return err
		},
		Validate: validate,
	})
}

func newEnvironment() (*cel.Env, error) {
	return cel.NewEnv(
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		ext.Strings(ext.StringsVersion(2)),
		ext.Sets(),
		ext.TwoVarComprehensions(),
		library.URLs(),
		library.Regex(),
		library.Lists(),
		library.Quantity(),
		library.IP(),
		library.CIDR(),
		library.Format(),
		library.SemverLib(),
		cel.Variable("object", cel.DynType),
		cel.Variable("oldObject", cel.DynType),
		cel.Variable("request", cel.DynType),
		cel.Variable(namespaceVariable, cel.DynType),
	)
}

func compile(settings Settings) (*policy, error) {
	if len(settings.Validations) == 0 {
		return nil, fmt.Errorf("validations: expected at least one")
	}
	env, err := newEnvironment()
	if err != nil {
		return nil, err
	}
	compiled := &policy{settings: settings}
	for i, variable := range settings.Variables {
		program, kind, err := compileOne(env, variable.Expression)
		if err != nil {
			return nil, fmt.Errorf("variables[%d].expression: %w", i, err)
		}
		compiled.variables = append(compiled.variables, program)
		if env, err = env.Extend(cel.Variable("variables."+variable.Name, kind)); err != nil {
			return nil, err
		}
	}
	for i, validation := range settings.Validations {
		program, kind, err := compileOne(env, validation.Expression)
		if err != nil {
			return nil, fmt.Errorf("validations[%d].expression: %w", i, err)
		}
		if !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
			return nil, fmt.Errorf("validations[%d].expression: expected bool, got %s", i, kind)
		}
		message, err := compileMessage(env, validation.MessageExpression)
		if err != nil {
			return nil, fmt.Errorf("validations[%d].messageExpression: %w", i, err)
		}
		compiled.validations = append(compiled.validations, program)
		compiled.messages = append(compiled.messages, message)
	}
	return compiled, nil
}

func compileMessage(env *cel.Env, expression string) (cel.Program, error) {
	if expression == "" {
		return nil, nil
	}
	program, _, err := compileOne(env, expression)
	return program, err
}

func compileOne(env *cel.Env, expression string) (cel.Program, *cel.Type, error) {
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, nil, issues.Err()
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(costLimit))
	return program, ast.OutputType(), err
}

// decide returns the message of the first validation that fails.
func (p *policy) decide(bindings map[string]any) (string, error) {
	for i, variable := range p.variables {
		value, _, err := variable.Eval(bindings)
		if err != nil {
			return "", fmt.Errorf("variables[%d].expression: %w", i, err)
		}
		bindings["variables."+p.settings.Variables[i].Name] = value
	}
	for i, validation := range p.validations {
		value, _, err := validation.Eval(bindings)
		if err != nil {
			return "", fmt.Errorf("validations[%d].expression: %w", i, err)
		}
		if value != types.True {
			return p.message(i, bindings)
		}
	}
	return "", nil
}

func (p *policy) message(i int, bindings map[string]any) (string, error) {
	if p.messages[i] != nil {
		value, _, err := p.messages[i].Eval(bindings)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(value.Value()), nil
	}
	if p.settings.Validations[i].Message != "" {
		return p.settings.Validations[i].Message, nil
	}
	return "failed expression: " + p.settings.Validations[i].Expression, nil
}

func validate(request protocol.KubernetesAdmissionRequest, settings Settings) ([]byte, error) {
	compiled, err := compile(settings)
	if err != nil {
		return nil, err
	}
	bindings, err := bind(request, settings)
	if err != nil {
		return nil, err
	}
	message, err := compiled.decide(bindings)
	if err != nil {
		return nil, err
	}
	if message != "" {
		return nil, errors.New(message)
	}
	return kubewarden.AcceptRequest()
}

func bind(request protocol.KubernetesAdmissionRequest, settings Settings) (map[string]any, error) {
	object, err := decode(request.Object)
	if err != nil {
		return nil, err
	}
	old, err := decode(request.OldObject)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	whole, err := decode(raw)
	if err != nil {
		return nil, err
	}
	bindings := map[string]any{"object": object, "oldObject": old, "request": whole, namespaceVariable: nil}
	if settings.read(namespaceVariable) && request.Namespace != "" {
		if bindings[namespaceVariable], err = namespaceOf(request.Namespace); err != nil {
			return nil, err
		}
	}
	return bindings, nil
}

func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var value any
	err := json.Unmarshal(raw, &value)
	return value, err
}

// read tells whether an expression names the variable.
func (s Settings) read(name string) bool {
	for _, variable := range s.Variables {
		if strings.Contains(variable.Expression, name) {
			return true
		}
	}
	for _, validation := range s.Validations {
		if strings.Contains(validation.Expression+validation.MessageExpression, name) {
			return true
		}
	}
	return false
}

func namespaceOf(name string) (any, error) {
	host := capabilities.NewHost()
	answer, err := kubernetes.GetResource(&host, kubernetes.GetResourceRequest{APIVersion: "v1", Kind: "Namespace", Name: name})
	if err != nil {
		return nil, err
	}
	return decode(answer)
}
