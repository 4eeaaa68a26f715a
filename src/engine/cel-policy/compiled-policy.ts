import {
  BOOL,
  callsFunction,
  CelError,
  formatType,
  listOf,
  NULL,
  STRING,
  struct,
  usesVariable,
} from '../../cel/index.ts';
import type { CelType, Program } from '../../cel/index.ts';
import { MAX_PATTERN_SIZE } from '../../go/index.ts';
import { invalid } from '../../resources/index.ts';
import type { FieldProblem } from '../values/field-problem.ts';
import { trimSpace } from './go-space.ts';
import { variableType } from './policy-environment.ts';
import type { ExpressionScope, PolicyEnvironments } from './policy-environment.ts';
import type { MutationSpec, PolicySpec, ValidationSpec } from './policy-spec.ts';
import { fieldOfPatch } from './read-policy.ts';

/** A compiled policy. Belongs to one thread. */
export interface CompiledPolicy {
  readonly spec: PolicySpec;
  readonly variables: ReadonlyMap<string, Program>;
  readonly matchConditions: readonly PolicyExpression[];
  readonly validations: readonly CompiledValidation[];
  readonly auditAnnotations: readonly CompiledAuditAnnotation[];
  readonly mutations: readonly CompiledMutation[];
  /** Path of the first expression that uses `namespaceObject`; undefined if there is none. */
  readonly namespaceUse: string | undefined;
  readonly usesAuthorizer: boolean;
  /** Path of the first expression with the variable `authorizer`; undefined if there is none. */
  readonly authorizerUse: string | undefined;
  /** All expressions by their paths. */
  readonly programs: ReadonlyMap<string, Program>;
  /** Paths of the expressions that ask what a service account may do. */
  readonly accountUses: readonly string[];
}

export interface PolicyExpression {
  /** The expression as runtime errors quote it. */
  readonly text: string;
  readonly program: Program;
}

export interface CompiledValidation extends PolicyExpression {
  readonly spec: ValidationSpec;
  readonly message: PolicyExpression | undefined;
}

export interface CompiledAuditAnnotation extends PolicyExpression {
  readonly key: string;
}

export interface CompiledMutation extends PolicyExpression {
  readonly patchType: MutationSpec['patchType'];
}

/**
 * Maximum number of instructions of all regular expressions that a policy has as literals: a tenth of a second to compile. A
 * published policy has a few hundred.
 */
const MAX_POLICY_PATTERN_SIZE = 2 * MAX_PATTERN_SIZE;

/** Compiles all expressions of a policy. Mistakes are added to `problems`; the policy must not be used then. */
export function compilePolicy(
  spec: PolicySpec,
  environments: PolicyEnvironments,
  problems: FieldProblem[],
): CompiledPolicy {
  return new PolicyCompiler(spec, environments, problems).compile();
}

/** Types that an expression may return; empty for any type. */
type Expected = readonly CelType[];

const ANYTHING: Expected = [];
const CONDITION: Expected = [BOOL];
const MESSAGE: Expected = [STRING];
const ANNOTATION: Expected = [STRING, NULL];
const PATCH_RESULTS: Readonly<Record<MutationSpec['patchType'], Expected>> = {
  JSONPatch: [listOf(struct('JSONPatch'))],
  ApplyConfiguration: [struct('Object')],
};

/** Prefix of errors about expressions that compile but always fail at runtime, because of a constant. */
const UNUSABLE = 'program instantiation failed';

class PolicyCompiler {
  readonly #spec: PolicySpec;
  readonly #environments: PolicyEnvironments;
  readonly #problems: FieldProblem[];
  readonly #root: string;
  readonly #scope: ExpressionScope;
  readonly #types = new Map<string, CelType>();
  /** Programs by the paths of their expressions. */
  readonly #programs = new Map<string, Program>();
  #patternSize = 0;

  constructor(spec: PolicySpec, environments: PolicyEnvironments, problems: FieldProblem[]) {
    this.#spec = spec;
    this.#environments = environments;
    this.#problems = problems;
    this.#root = spec.name === undefined ? '' : 'spec.';
    this.#scope = {
      hasParams: spec.paramKind !== undefined,
      hasAuthorizer: true,
      hasVariables: spec.variables.length > 0 || spec.kind === 'mutating',
      hasPatchTypes: false,
    };
  }

  compile(): CompiledPolicy {
    const spec = this.#spec;
    const matchConditions = this.#all(spec.matchConditions, 'matchConditions', (condition, path) =>
      // Without variables, which are computed only for requests that match.
      this.#compile(
        condition.expression,
        `${path}.expression`,
        { ...this.#scope, hasVariables: false },
        CONDITION,
        true,
      ),
    );
    const variables = this.#variables();
    const validations = this.#all(spec.validations, 'validations', (validation, path) =>
      this.#validation(validation, path),
    );
    const auditAnnotations = this.#all(spec.auditAnnotations, 'auditAnnotations', ({ key, valueExpression }, path) => {
      const compiled = this.#compile(valueExpression, `${path}.valueExpression`, this.#scope, ANNOTATION, true);
      return compiled && { ...compiled, key };
    });
    const mutations = this.#all(spec.mutations, 'mutations', ({ patchType, expression }, path) => {
      const field = `${path}.${fieldOfPatch(patchType)}.expression`;
      const scope = { ...this.#scope, hasPatchTypes: true };
      const compiled = this.#compile(expression, field, scope, PATCH_RESULTS[patchType], true);
      return compiled && { ...compiled, patchType };
    });
    const pathTo = (name: string): string | undefined =>
      [...this.#programs].find(([, { text }]) => text.includes(name))?.[0];
    return {
      spec,
      variables,
      matchConditions,
      validations,
      auditAnnotations,
      mutations,
      namespaceUse: pathTo('namespaceObject'),
      usesAuthorizer: pathTo('authorizer') !== undefined,
      authorizerUse: this.#pathsTo('authorizer', usesVariable)[0],
      programs: this.#programs,
      accountUses: this.#pathsTo('serviceAccount', callsFunction),
    };
  }

  /** The paths of expressions with a name. Their texts are searched first: few contain it. */
  #pathsTo(name: string, contains: typeof usesVariable): readonly string[] {
    return [...this.#programs]
      .filter(([, { text, checked }]) => text.includes(name) && contains(checked.expression, name))
      .map(([path]) => path);
  }

  #all<Spec, Compiled>(
    specs: readonly Spec[],
    field: string,
    compile: (spec: Spec, path: string) => Compiled | undefined,
  ): Compiled[] {
    return specs.flatMap((spec, index) => compile(spec, `${this.#root}${field}[${index}]`) ?? []);
  }

  #variables(): ReadonlyMap<string, Program> {
    const programs = new Map<string, Program>();
    for (const [index, { name, expression }] of this.#spec.variables.entries()) {
      const path = `${this.#root}variables[${index}].expression`;
      const compiled = this.#compile(expression, path, this.#scope, ANYTHING);
      // Declared even if invalid, so that later expressions can be checked.
      this.#types.set(name, variableType(compiled?.program.resultType ?? { kind: 'dyn' }));
      if (compiled !== undefined) {
        programs.set(name, compiled.program);
      }
    }
    return programs;
  }

  #validation(spec: ValidationSpec, path: string): CompiledValidation | undefined {
    const condition = this.#compile(spec.expression, `${path}.expression`, this.#scope, CONDITION);
    const message =
      trimSpace(spec.messageExpression) === ''
        ? undefined
        : this.#compile(
            spec.messageExpression,
            `${path}.messageExpression`,
            { ...this.#scope, hasAuthorizer: false },
            MESSAGE,
          );
    return condition && { ...condition, spec, message };
  }

  /** `isTrimmed`: API servers check some expressions without surrounding space, and evaluate them with it. */
  #compile(
    text: string,
    path: string,
    scope: ExpressionScope,
    expected: Expected,
    isTrimmed = false,
  ): PolicyExpression | undefined {
    const checked = isTrimmed ? trimSpace(text) : text;
    if (trimSpace(text) === '') {
      // Reported by the reader.
      return undefined;
    }
    if (this.#patternSize > MAX_POLICY_PATTERN_SIZE) {
      // Reported for the expression that exceeded it.
      return undefined;
    }
    try {
      const program = this.#environments.compile(checked, scope, this.#types);
      this.#patternSize += program.patternSize;
      const reason = this.#tooManyPatterns() ?? mismatch(program.resultType, expected);
      if (reason !== undefined) {
        this.#problems.push(invalid(path, checked, reason));
        return undefined;
      }
      this.#programs.set(path, program);
      return { text, program };
    } catch (error) {
      if (!(error instanceof CelError)) {
        throw error;
      }
      if (error.message.startsWith(UNUSABLE)) {
        this.#problems.push({ field: path, message: `Internal error: ${error.message}`, position: positionOf(error) });
      } else {
        const problem = invalid(path, checked, `compilation failed: ${error.message}`);
        this.#problems.push({ ...problem, position: positionOf(error) });
      }
      return undefined;
    }
  }

  #tooManyPatterns(): string | undefined {
    return this.#patternSize > MAX_POLICY_PATTERN_SIZE
      ? `the regular expressions of the policy are too large together: expected at most ${MAX_POLICY_PATTERN_SIZE} instructions, got up to ${this.#patternSize}`
      : undefined;
  }
}

function positionOf(error: CelError): FieldProblem['position'] {
  const [issue] = error.issues;
  return issue && { line: issue.line, column: issue.column, excerpt: issue.excerpt };
}

/** The name of a type in these messages of API servers; it differs from the checker's. */
function typeName(type: CelType): string {
  switch (type.kind) {
    case 'null':
      return 'null_type';
    case 'timestamp':
      return 'google.protobuf.Timestamp';
    case 'duration':
      return 'google.protobuf.Duration';
    case 'list':
      return `list(${typeName(type.element)})`;
    case 'map':
      return `map(${typeName(type.key)}, ${typeName(type.value)})`;
    default:
      return formatType(type);
  }
}

function mismatch(type: CelType, types: Expected): string | undefined {
  const got = typeName(type);
  const names = types.map(typeName);
  if (types.length === 0 || names.includes(got)) {
    return undefined;
  }
  return names.length === 1
    ? `must evaluate to ${names[0]} but got ${got}`
    : `must evaluate to one of [${names.join(' ')}] but got ${got}`;
}
