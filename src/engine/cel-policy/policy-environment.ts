import {
  ADMISSION_REQUEST,
  ADMISSION_REQUEST_STRUCTS,
  AUTHORIZER,
  createEnvironment,
  DYN,
  languageOf,
  listOf,
  mapOf,
  MUTATION_LIBRARIES,
  MUTATION_TYPES,
  mutationTypesOf,
  newExpressionsVersion,
  RESOURCE_CHECK,
  STRING,
  struct,
  INT,
  TIMESTAMP,
} from '../../cel/index.ts';
import type {
  CelType,
  Environment,
  EnvironmentOptions,
  InferredType,
  ObjectTypes,
  Program,
  TypeProvider,
} from '../../cel/index.ts';
import { MUTATION_STRUCTS } from './mutation-structs.ts';

/** Available variables besides `object`, `oldObject`, `request` and `namespaceObject`. */
export interface ExpressionScope {
  readonly hasParams: boolean;
  readonly hasAuthorizer: boolean;
  /** Whether `variables` is available. */
  readonly hasVariables: boolean;
  /** Whether `Object{…}` and `JSONPatch{…}` are available. */
  readonly hasPatchTypes: boolean;
}

export interface PolicyEnvironmentsOptions {
  /**
   * Minor version of the API server that checks and evaluates the expressions, as new ones. Default: the language of the
   * newest known version.
   */
  readonly kubernetesVersion?: number;
  /**
   * Whether `request` has the fields of an AdmissionReview that policies of API servers cannot use: `uid`, `object`,
   * `oldObject`. Kubewarden's policies can.
   */
  readonly hasWholeRequest: boolean;
  /** Types of objects, to check expressions against the schemas of kinds. Default: any. */
  readonly objects?: PolicyObjects;
}

/** Types of `object` and `oldObject`, and of `params`. */
interface PolicyObjects {
  readonly object: CelType;
  readonly params: CelType;
  readonly types: ObjectTypes;
}

/** The name of the type of `variables`, also in error messages. */
export const VARIABLES_TYPE = 'kubernetes.variables';

const TEXTS = listOf(STRING);
const STRUCTS: Readonly<Record<string, Readonly<Record<string, CelType>>>> = {
  ...ADMISSION_REQUEST_STRUCTS,
  'kubernetes.Namespace': {
    metadata: struct('kubernetes.NamespaceMetadata'),
    spec: struct('kubernetes.NamespaceSpec'),
    status: struct('kubernetes.NamespaceStatus'),
  },
  'kubernetes.NamespaceMetadata': {
    name: STRING,
    generateName: STRING,
    namespace: STRING,
    labels: mapOf(STRING, STRING),
    annotations: mapOf(STRING, STRING),
    UID: STRING,
    creationTimestamp: TIMESTAMP,
    deletionGracePeriodSeconds: INT,
    deletionTimestamp: TIMESTAMP,
    generation: INT,
    resourceVersion: STRING,
    finalizers: TEXTS,
  },
  'kubernetes.NamespaceSpec': { finalizers: TEXTS },
  'kubernetes.NamespaceStatus': { conditions: listOf(struct('kubernetes.NamespaceCondition')), phase: STRING },
  'kubernetes.NamespaceCondition': {
    status: STRING,
    type: STRING,
    lastTransitionTime: TIMESTAMP,
    message: STRING,
    reason: STRING,
  },
};
const WHOLE_REQUEST = { uid: STRING };

type VariableTypes = ReadonlyMap<string, CelType>;
const NO_VARIABLES: VariableTypes = new Map();

/** Compiles expressions of policies. Environments are created on first use and shared by all policies. */
export class PolicyEnvironments {
  readonly #options: PolicyEnvironmentsOptions;
  readonly #environments = new Map<string, Environment>();
  /** Variables of the policy that is being compiled. */
  #variables: VariableTypes = NO_VARIABLES;

  constructor(options: PolicyEnvironmentsOptions) {
    this.#options = options;
  }

  /** `variables`: types of the policy's variables so far. Throws CelError. */
  compile(expression: string, scope: ExpressionScope, variables: VariableTypes): Program {
    this.#variables = variables;
    try {
      return this.#environment(scope).compile(expression);
    } finally {
      this.#variables = NO_VARIABLES;
    }
  }

  /** The type of an expression, and its errors. Throws CelError `syntax-invalid`. */
  inferType(expression: string, scope: ExpressionScope, variables: VariableTypes): InferredType {
    this.#variables = variables;
    try {
      return this.#environment(scope).inferType(expression);
    } finally {
      this.#variables = NO_VARIABLES;
    }
  }

  #environment(scope: ExpressionScope): Environment {
    const key = JSON.stringify([scope.hasParams, scope.hasAuthorizer, scope.hasVariables, scope.hasPatchTypes]);
    const known = this.#environments.get(key);
    if (known !== undefined) {
      return known;
    }
    const { kubernetesVersion, objects } = this.#options;
    const object = objects?.object ?? DYN;
    const environment = createEnvironment({
      ...(kubernetesVersion === undefined ? {} : serverLanguage(kubernetesVersion)),
      variables: {
        object,
        oldObject: object,
        namespaceObject: struct('kubernetes.Namespace'),
        request: struct(ADMISSION_REQUEST),
        ...(scope.hasVariables ? { variables: struct(VARIABLES_TYPE) } : {}),
        ...(scope.hasParams ? { params: objects?.params ?? DYN } : {}),
        ...(scope.hasAuthorizer
          ? {
              authorizer: AUTHORIZER,
              'authorizer.requestResource': RESOURCE_CHECK,
            }
          : {}),
      },
      types: this.#types(scope),
      ...(scope.hasPatchTypes ? { structs: MUTATION_STRUCTS, libraries: MUTATION_LIBRARIES } : {}),
    });
    this.#environments.set(key, environment);
    return environment;
  }

  #types({ hasPatchTypes }: ExpressionScope): TypeProvider {
    const { hasWholeRequest, objects } = this.#options;
    const { object = DYN } = objects ?? {};
    const whole = { ...WHOLE_REQUEST, object, oldObject: object };
    const structs = hasWholeRequest
      ? { ...STRUCTS, [ADMISSION_REQUEST]: { ...STRUCTS[ADMISSION_REQUEST], ...whole } }
      : STRUCTS;
    const fieldsOf = (name: string): Readonly<Record<string, CelType>> | undefined =>
      Object.hasOwn(structs, name) ? structs[name] : undefined;
    const patch = hasPatchTypes ? mutationTypes(objects) : undefined;
    const others = [...(objects === undefined ? [] : [objects.types]), ...(patch === undefined ? [] : [patch])];
    const ownerOf = (name: string): TypeProvider | undefined =>
      others.find((one) => one.findStruct(name) !== undefined);
    return {
      ...(objects === undefined ? {} : { json: objects.types.json }),
      findStruct: (name) =>
        name === VARIABLES_TYPE || fieldsOf(name) !== undefined ? struct(name) : ownerOf(name)?.findStruct(name),
      fieldType: (name, field) => {
        if (name === VARIABLES_TYPE) {
          return this.#variables.get(field);
        }
        const fields = fieldsOf(name);
        if (fields === undefined) {
          return ownerOf(name)?.fieldType(name, field);
        }
        return Object.hasOwn(fields, field) ? fields[field] : undefined;
      },
      fieldNames: (name) =>
        name === VARIABLES_TYPE
          ? [...this.#variables.keys()]
          : (Object.keys(fieldsOf(name) ?? {}) as readonly string[]).concat(ownerOf(name)?.fieldNames?.(name) ?? []),
      mayQualify: (firstWord) => patch?.mayQualify?.(firstWord) ?? false,
    };
  }
}

/** Types of mutations: of objects of a kind, or of any objects. */
function mutationTypes(objects: PolicyObjects | undefined): TypeProvider {
  return objects === undefined ? MUTATION_TYPES : mutationTypesOf(objects.object, objects.types);
}

/**
 * The language of new expressions in an API server. Its evaluator is that of its own version, also where it allows only the
 * language of the version before.
 */
function serverLanguage(version: number): Pick<EnvironmentOptions, 'kubernetesVersion' | 'language'> {
  const { optionalReceivers } = languageOf(version);
  return { kubernetesVersion: newExpressionsVersion(version), language: { optionalReceivers } };
}

/**
 * The type of a variable in later expressions. As in API servers: lists, maps and JSON types; everything else is `dyn`.
 */
export function variableType(type: CelType): CelType {
  switch (type.kind) {
    case 'list':
      return listOf(variableType(type.element));
    case 'map':
      return mapOf(variableType(type.key), variableType(type.value));
    case 'opaque':
    case 'struct':
    case 'type':
    case 'parameter':
    case 'error':
      return DYN;
    default:
      return type;
  }
}
