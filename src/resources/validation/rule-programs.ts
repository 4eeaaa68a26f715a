import { CelError, createEnvironment, optionalOf, SchemaTypes, formatIssue, usesVariable } from '../../cel/index.ts';
import type { CelType, Environment, Program } from '../../cel/index.ts';
import type { Schema, ValidationRule } from '../schema.ts';
import { parseFieldPath } from './field-path.ts';

/**
 * The CEL environment of rules. An API server accepts only rules that the previous minor version supports; this folder
 * imitates 1.34.
 */
const RULES_KUBERNETES_VERSION = 33;

/** A compiled rule. */
export interface CompiledRule {
  readonly rule: ValidationRule;
  /** Undefined for empty rules, which are not run. */
  readonly program: Program | undefined;
  /** Why compilation failed. */
  readonly error: string | undefined;
  /** Whether the rule uses `oldSelf`. */
  readonly isTransition: boolean;
  readonly message: Program | undefined;
  /** Why the message expression did not compile. */
  readonly messageError: string | undefined;
  /** `policies[a]`: path of the errors relative to the rule; empty for its own place. */
  readonly fieldPath: string;
}

/** Compiles the rules of one schema node. */
export class RuleCompiler {
  readonly #schema: Schema;
  readonly #types = new SchemaTypes();
  readonly #self: CelType | undefined;
  #plain: Environment | undefined;
  #optionalOld: Environment | undefined;

  /** @param isResource whether the node is a whole object, whose `apiVersion`, `kind` and names are visible */
  constructor(schema: Schema, isResource: boolean) {
    this.#schema = isResource ? withVisibleMetadata(schema) : schema;
    this.#self = this.#types.declare('selfType', this.#schema, isResource);
  }

  /** Whether rules can access values of the schema at all. */
  get isVisible(): boolean {
    return this.#self !== undefined;
  }

  /** Maximum number of values of the schema in one request: the maximum length of a list of them. */
  get mostInRequest(): number {
    const list = new SchemaTypes();
    list.declare('list', { type: 'array', items: this.#schema });
    return list.sizesOf('list')(['self'])?.max ?? Infinity;
  }

  compile(rule: ValidationRule): CompiledRule {
    const environment = this.#environment(rule.optionalOldSelf === true);
    const compiled: CompiledRule = {
      rule,
      program: undefined,
      error: undefined,
      isTransition: false,
      message: undefined,
      messageError: undefined,
      fieldPath: '',
    };
    if (rule.rule.trim() === '') {
      return compiled;
    }
    const program = compileOf(environment, rule.rule, 'bool');
    if (typeof program === 'string') {
      return { ...compiled, error: program };
    }
    const hasMessage = rule.messageExpression !== undefined && rule.messageExpression !== '';
    const message = hasMessage ? compileOf(environment, rule.messageExpression ?? '', 'string') : undefined;
    const place = rule.fieldPath === undefined ? '' : parseFieldPath(rule.fieldPath, this.#schema);
    return {
      ...compiled,
      program,
      isTransition: usesVariable(program.checked.expression, 'oldSelf'),
      message: typeof message === 'string' ? undefined : message,
      messageError: typeof message === 'string' ? message : undefined,
      fieldPath: typeof place === 'string' ? '' : place.path,
    };
  }

  /** Environments are expensive, so each is created on first use. */
  #environment(isOldOptional: boolean): Environment {
    if (isOldOptional) {
      this.#optionalOld ??= this.#makeEnvironment(optionalOf);
      return this.#optionalOld;
    }
    this.#plain ??= this.#makeEnvironment((self) => self);
    return this.#plain;
  }

  #makeEnvironment(oldSelf: (self: CelType) => CelType): Environment {
    const self = this.#self;
    if (self === undefined) {
      throw new CelError('environment-invalid', 'failed to convert to declType for CEL validation rules');
    }
    return createEnvironment({
      kubernetesVersion: RULES_KUBERNETES_VERSION,
      variables: { self, oldSelf: oldSelf(self) },
      types: this.#types,
      sizes: this.#types.sizesOf('selfType'),
    });
  }
}

/** The program, or an error message. */
function compileOf(environment: Environment, text: string, type: 'bool' | 'string'): Program | string {
  try {
    const program = environment.compile(text);
    if (program.resultType.kind !== type) {
      return type === 'bool' ? 'cel expression must evaluate to a bool' : 'messageExpression must evaluate to a string';
    }
    return program;
  } catch (error) {
    if (error instanceof CelError) {
      const what = type === 'bool' ? 'compilation failed' : 'messageExpression compilation failed';
      return `${what}: ${error.issues.length === 0 ? error.message : error.issues.map(formatIssue).join('\n')}`;
    }
    throw error;
  }
}

/** Rules of whole objects can access names, but no other metadata. */
function withVisibleMetadata(schema: Schema): Schema {
  const { name, generateName } = schema.properties?.['metadata']?.properties ?? {};
  const text: Schema = { type: 'string' };
  return {
    ...schema,
    properties: {
      ...schema.properties,
      apiVersion: text,
      kind: text,
      metadata: { type: 'object', properties: { name: name ?? text, generateName: generateName ?? text } },
    },
  };
}
