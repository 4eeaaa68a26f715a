package library

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
)

// Policies have no authorizer, and its library would link a part of the API
// server. What is left are the names that the rest of the package reads.

// AuthorizerType and the types after it are those of the authorizer.
var (
	AuthorizerType    = cel.ObjectType("kubernetes.authorization.Authorizer")
	PathCheckType     = cel.ObjectType("kubernetes.authorization.PathCheck")
	GroupCheckType    = cel.ObjectType("kubernetes.authorization.GroupCheck")
	ResourceCheckType = cel.ObjectType("kubernetes.authorization.ResourceCheck")
	DecisionType      = cel.ObjectType("kubernetes.authorization.Decision")
)

var authzLib, authzSelectorsLib = listsLib, listsLib

type (
	authorizerVal    struct{ ref.Val }
	pathCheckVal     struct{ ref.Val }
	groupCheckVal    struct{ ref.Val }
	resourceCheckVal struct{ ref.Val }
	decisionVal      struct{ ref.Val }
)
