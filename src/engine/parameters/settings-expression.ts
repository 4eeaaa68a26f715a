// The CEL expression that turns parameters into settings. Loaded with the first policy that has parameters, because it
// loads src/cel.
import {
  Cancellation,
  CelError,
  type CelIssue,
  CelMap,
  type CelRecord,
  type CelValue,
  createEnvironment,
  describeIssue,
  DYN,
  type Environment,
  EvaluationFailure,
  type Expression,
  EXPRESSION_COST_LIMIT,
  formatType,
  mapOf,
  type ObjectTypes,
  type Program,
  STRING,
  struct,
  type CelType,
  usesVariable,
} from '../../cel/index.ts';
import { type JsonObject, type JsonValue, nearestKey, setOwn } from '../../values/index.ts';
import { jsonOf, MutationValueError } from '../cel-policy/mutation-structs.ts';
import { isJsonObject } from '../values/json-text.ts';

/** Characters of the overridden settings as JSON: parameters of one tenant have some hundred. */
export const MAX_OVERRIDES_LENGTH = 65_536;
/** Nesting of the overridden settings, as that of settings. */
const MAX_OVERRIDES_DEPTH = 100;

const NAMESPACE = 'kubernetes.Namespace';
const NAMESPACE_METADATA = 'kubernetes.NamespaceMetadata';
const TEXTS = mapOf(STRING, STRING);
const STRUCTS: ReadonlyMap<string, Readonly<Record<string, CelType>>> = new Map([
  [NAMESPACE, { metadata: struct(NAMESPACE_METADATA) }],
  [NAMESPACE_METADATA, { name: STRING, labels: TEXTS, annotations: TEXTS }],
]);

let environment: Environment | undefined;

/** The environment of all expressions. It holds no state of policies. */
function settingsEnvironment(): Environment {
  environment ??= environmentWith(DYN);
  return environment;
}

/** @param types of `params` */
function environmentWith(params: CelType, types?: ObjectTypes): Environment {
  return createEnvironment({
    variables: { params, namespaceObject: struct(NAMESPACE) },
    // Settings have values of different types.
    language: { homogeneousLiterals: false },
    types: {
      ...(types === undefined ? {} : { json: types.json }),
      findStruct: (name) => (STRUCTS.has(name) ? struct(name) : types?.findStruct(name)),
      fieldType: (name, field) => {
        const fields = STRUCTS.get(name);
        if (fields === undefined) {
          return types?.fieldType(name, field);
        }
        return Object.hasOwn(fields, field) ? fields[field] : undefined;
      },
      fieldNames: (name) => {
        const fields = STRUCTS.get(name);
        return fields === undefined ? (types?.fieldNames(name) ?? []) : Object.keys(fields);
      },
    },
  });
}

/**
 * The errors of an expression for parameters of a type; nothing for one that does not compile for any parameters.
 * @param types that of the parameters, and those of its fields
 */
export function settingsIssues(text: string, params: CelType, types: ObjectTypes): readonly CelIssue[] {
  try {
    settingsEnvironment().compile(text);
  } catch (error) {
    if (error instanceof CelError) {
      return [];
    }
    throw error;
  }
  return environmentWith(params, types).inferType(text).issues;
}

/** Values for overridable keys of the settings, or why there are none. */
export type Overrides = { readonly values: JsonObject } | { readonly problem: string };

/** A compiled expression. */
export class SettingsExpression {
  /** Whether the result depends on labels or annotations of the namespace. */
  readonly usesNamespace: boolean;
  readonly #program: Program;
  readonly #overridable: ReadonlySet<string>;

  private constructor(program: Program, overridable: ReadonlySet<string>) {
    this.#program = program;
    this.#overridable = overridable;
    this.usesNamespace = usesVariable(program.checked.expression, 'namespaceObject');
  }

  /** The expression, or why it cannot be used. */
  static compile(
    text: string,
    overridable: readonly string[],
  ): { readonly expression: SettingsExpression } | { readonly problem: string } {
    const keys = new Set(overridable);
    try {
      const program = settingsEnvironment().compile(text);
      const problem = typeProblem(program) ?? keyProblem(program.checked.expression, keys);
      return problem === undefined ? { expression: new SettingsExpression(program, keys) } : { problem };
    } catch (error) {
      if (error instanceof CelError) {
        const detail = error.issues.length === 0 ? error.message : error.issues.map(describeIssue).join('\n');
        return { problem: `the expression does not compile: ${detail}` };
      }
      throw error;
    }
  }

  /**
   * Evaluates the expression. Keys whose value is null keep the value of the policy's settings.
   * @param namespaceObject null for cluster-scoped requests
   */
  evaluate(params: JsonObject, namespaceObject: JsonObject | null): Overrides {
    const { value } = this.#program.run({ params, namespaceObject }, { budget: EXPRESSION_COST_LIMIT });
    if (value instanceof Cancellation || value instanceof EvaluationFailure) {
      return { problem: `settingsExpression failed: ${value.message}` };
    }
    return this.#overridesOf(value);
  }

  #overridesOf(value: CelValue): Overrides {
    const excess = excessOf(value);
    if (excess !== undefined) {
      return { problem: `settingsExpression: expected settings of at most ${excess}, got more` };
    }
    let json: JsonValue;
    try {
      json = jsonOf(value);
    } catch (error) {
      if (error instanceof MutationValueError) {
        return { problem: `settingsExpression has a result that is no JSON: ${error.message}` };
      }
      throw error;
    }
    if (!isJsonObject(json)) {
      return { problem: 'settingsExpression: expected a map of settings, got another value' };
    }
    const values: JsonObject = {};
    for (const [key, one] of Object.entries(json)) {
      if (!this.#overridable.has(key)) {
        return { problem: `settingsExpression: ${notOverridable(key, this.#overridable)}` };
      }
      if (one !== null) {
        setOwn(values, key, one);
      }
    }
    return { values };
  }
}

/**
 * The limit that a value exceeds: {@link MAX_OVERRIDES_LENGTH} values and characters, or {@link MAX_OVERRIDES_DEPTH} levels.
 * Checked before it becomes JSON: lists that share elements can have exponentially many.
 */
function excessOf(value: CelValue): string | undefined {
  let left = MAX_OVERRIDES_LENGTH;
  const open: { readonly one: CelValue; readonly depth: number }[] = [{ one: value, depth: 1 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { one, depth } = next;
    const children = childrenOf(one);
    left -= 1 + children.length + (typeof one === 'string' || one instanceof Uint8Array ? one.length : 0);
    if (left < 0) {
      return `${MAX_OVERRIDES_LENGTH} characters`;
    }
    if (depth > MAX_OVERRIDES_DEPTH && typeof one === 'object' && one !== null) {
      return `${MAX_OVERRIDES_DEPTH} levels`;
    }
    open.push(...children.map((child) => ({ one: child, depth: depth + 1 })));
  }
  return undefined;
}

/** Elements of a list; keys and values of a map. */
function childrenOf(value: CelValue): readonly CelValue[] {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) {
    return [];
  }
  if (Array.isArray(value)) {
    return value as readonly CelValue[];
  }
  if (value instanceof CelMap) {
    return [...value.entries.values()].flat();
  }
  return isRecord(value) ? Object.entries(value).flat() : [];
}

function isRecord(value: object): value is CelRecord {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function typeProblem({ resultType }: Program): string | undefined {
  const isMap =
    resultType.kind === 'dyn' ||
    (resultType.kind === 'map' && (resultType.key.kind === 'string' || resultType.key.kind === 'dyn'));
  return isMap
    ? undefined
    : `expected an expression whose result is a map with keys of settings, got ${formatType(resultType)}`;
}

/** A key of the resulting map, written in the expression, that is not overridable. */
function keyProblem(root: Expression, overridable: ReadonlySet<string>): string | undefined {
  if (root.kind !== 'map') {
    return undefined;
  }
  for (const { key } of root.entries) {
    if (key.kind === 'literal' && typeof key.value === 'string' && !overridable.has(key.value)) {
      return notOverridable(key.value, overridable);
    }
  }
  return undefined;
}

function notOverridable(key: string, overridable: ReadonlySet<string>): string {
  const known = [...overridable];
  const nearest = nearestKey(key, known);
  const hint = nearest === undefined ? 'add it to parameters.overridable' : `did you mean ${JSON.stringify(nearest)}?`;
  return `the key ${JSON.stringify(key)} is not overridable: ${hint}`;
}
