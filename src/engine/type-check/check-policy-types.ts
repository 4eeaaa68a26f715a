// Checks the types of expressions against the schemas of the kinds that a policy matches, as API servers do for a
// ValidatingAdmissionPolicy (KEP-3488, `status.typeChecking`).
import { DYN, ObjectTypes } from '../../cel/index.ts';
import type { CelType } from '../../cel/index.ts';
import {
  builtinKinds,
  groupVersionOf,
  kindName,
  type MatchedKinds,
  matchedKinds,
  type OpenApiSchemas,
  type ServedResource,
} from '../../resources/index.ts';
import { PolicyEnvironments } from '../cel-policy/policy-environment.ts';
import type { PolicySpec } from '../cel-policy/policy-spec.ts';
import { readPolicy, readSettings } from '../cel-policy/read-policy.ts';
import type { MatchResources } from '../cel-policy/match-resources.ts';
import type { FieldProblem } from '../values/field-problem.ts';
import type { JsonObject } from '../values/json-text.ts';
import { settingsIssues } from '../parameters/settings-expression.ts';
import { inferAll } from './infer-types.ts';
import { certainFields, isGuard, type KindIssue, likelyIssues } from './likely-issues.ts';
import { expressionsOfConditions, expressionsOfPolicy, type TypedExpression } from './typed-expressions.ts';

/** Maximum number of kinds against which a policy is checked; as many as in API servers. */
const MAX_KINDS = 10;
/** Maximum number of warnings of one policy: nobody corrects more at once. */
const MAX_TYPE_WARNINGS = 20;

type Rules = Parameters<typeof matchedKinds>[0];
type Kind = Pick<ServedResource, 'group' | 'version' | 'kind'>;

/** `builtin:cel` with its settings. */
interface CheckedUse {
  /** Path of the settings, such as `spec.settings`. */
  readonly field: string;
  readonly settings: unknown;
}

/** The expression of a policy that turns parameters into settings. */
export interface CheckedParameters {
  /** Path of the expression. */
  readonly field: string;
  readonly expression: string;
  /** The kind of the parameters. */
  readonly apiVersion: string;
  readonly kind: string;
}

/** What is checked of a policy. */
export interface TypeCheckSubject {
  readonly rules: Rules;
  /** Match conditions of its webhook. */
  readonly conditions: readonly { readonly expression: string }[];
  /** Its uses of `builtin:cel`. */
  readonly uses: readonly CheckedUse[];
  /** Default: none. */
  readonly parameters?: readonly CheckedParameters[];
}

/** The kinds of a cluster, and their schemas. */
export interface PolicyKinds {
  readonly served: readonly ServedResource[];
  readonly schemas: OpenApiSchemas;
}

/** An error that an expression has for objects of some kinds. */
export interface TypeWarning {
  /** Path of the expression. */
  readonly field: string;
  readonly expression: string;
  /** `apps/v1 Deployment` */
  readonly kinds: readonly string[];
  /** The message of API servers: `undefined field 'hostpath'`. */
  readonly message: string;
  readonly hints: readonly string[];
  /** Position in the expression, from 1. */
  readonly line: number;
  readonly column: number;
  /** Whether the policy rejects every request, or does nothing, because the expression succeeds for no object. */
  readonly isCertain: boolean;
}

export interface TypeCheck {
  readonly warnings: readonly TypeWarning[];
  /** The kinds whose schemas were used. */
  readonly kinds: readonly string[];
  readonly expressions: number;
}

/** Checks a policy whose expressions compile. Others, and kinds without a schema, give no warnings. */
export function checkPolicyTypes(subject: TypeCheckSubject, kinds: PolicyKinds): TypeCheck {
  return new PolicyTypeChecker(subject, kinds).check();
}

/** Checks a ValidatingAdmissionPolicy or MutatingAdmissionPolicy, like {@link checkPolicyTypes}. */
export function checkManifestTypes(manifest: JsonObject, kinds: PolicyKinds): TypeCheck {
  const problems: FieldProblem[] = [];
  const spec = readPolicy(manifest, problems);
  const { resourceRules: rules = [] } = spec.matchConstraints ?? {};
  return new PolicyTypeChecker({ rules, conditions: [], uses: [] }, kinds).checkManifest(spec);
}

/** `undefined field 'hostpath' at 1:32, in v1 Pod: did you mean 'hostPath'?` */
export function describeTypeWarning({ kinds, message, hints, line, column }: TypeWarning): string {
  const hint = hints.length === 0 ? '' : `: ${hints[0]}`;
  return `${message} at ${line}:${column}, in ${kinds.join(', ')}${hint}`;
}

/** A kind with the type of its objects. */
interface TypedKind {
  readonly name: string;
  readonly type: CelType;
  readonly served: ServedResource | undefined;
}

class PolicyTypeChecker {
  readonly #subject: TypeCheckSubject;
  readonly #cluster: PolicyKinds;
  readonly #types: ObjectTypes;
  readonly #typesOfKinds = new Map<string, CelType>();
  readonly #checked = new Set<string>();
  #expressions = 0;

  constructor(subject: TypeCheckSubject, cluster: PolicyKinds) {
    this.#subject = subject;
    this.#cluster = cluster;
    const { resolve, metadata } = cluster.schemas;
    this.#types = new ObjectTypes({
      resolve,
      metadata,
    });
  }

  check(): TypeCheck {
    const { rules, conditions, uses, parameters = [] } = this.#subject;
    const matched = matchedKinds(rules, this.#cluster.served, MAX_KINDS);
    const checkedConditions = expressionsOfConditions(conditions);
    const isGuarded = checkedConditions.some(isGuard);
    return this.#result([
      ...this.#checkAll(checkedConditions, matched, DYN, false).map((one) => warningOf(one, 'spec.')),
      ...uses.flatMap(({ field, settings }) => this.#checkUse(field, settings, matched, isGuarded)),
      ...parameters.flatMap((one) => this.#checkParameters(one)),
    ]);
  }

  checkManifest(spec: PolicySpec): TypeCheck {
    const matched = matchedKinds(this.#subject.rules, this.#cluster.served, MAX_KINDS);
    const issues = this.#checkAll(expressionsOfPolicy(spec), matched, this.#paramsType(spec), false);
    return this.#result(issues.map((one) => warningOf(one, '')));
  }

  #result(warnings: readonly TypeWarning[]): TypeCheck {
    // An expression may have the same error in several places.
    const distinct = new Map(warnings.toReversed().map((one) => [`${one.field} ${one.message}`, one]));
    return {
      warnings: [...distinct.values()].toReversed().slice(0, MAX_TYPE_WARNINGS),
      kinds: [...this.#checked],
      expressions: this.#expressions,
    };
  }

  #checkUse(field: string, settings: unknown, matched: MatchedKinds, isGuarded: boolean): readonly TypeWarning[] {
    const problems: FieldProblem[] = [];
    const { spec } = readSettings(settings, problems);
    if (problems.length > 0) {
      return [];
    }
    const kinds = constrained(matched, spec.matchConstraints);
    const issues = this.#checkAll(expressionsOfPolicy(spec), kinds, this.#paramsType(spec), isGuarded);
    return issues.map((one) => warningOf(one, `${field}.`));
  }

  #checkParameters({ field, expression, apiVersion, kind }: CheckedParameters): readonly TypeWarning[] {
    return this.#typed({ ...groupVersionOf(apiVersion), kind }).flatMap(({ name, type }) => {
      this.#checked.add(name);
      this.#expressions += 1;
      return settingsIssues(expression, type, this.#types).map(({ message, hints, line, column }) => ({
        field,
        expression,
        kinds: [name],
        message,
        hints,
        line,
        column,
        isCertain: false,
      }));
    });
  }

  /** Checks expressions in order, so that variables are known to later ones. */
  #checkAll(
    expressions: readonly TypedExpression[],
    matched: MatchedKinds,
    params: CelType,
    isGuarded: boolean,
  ): readonly CertainIssue[] {
    const kinds = matched.kinds.flatMap((kind) => this.#typed(kind, kind));
    const checked = kinds.map(({ name, type, served }) => {
      this.#checked.add(name);
      const environments = new PolicyEnvironments({
        hasWholeRequest: true,
        objects: { object: type, params, types: this.#types },
      });
      return { name, expressions: inferAll(expressions, environments, served) };
    });
    this.#expressions += kinds.length === 0 ? 0 : expressions.length;
    const isWhole = !matched.isPartial && kinds.length === matched.kinds.length;
    const isKnown = isWhole && matched.kinds.every(isBuiltin);
    const certain = isKnown ? certainFields(expressions, checked) : new Set<string>();
    return likelyIssues(expressions, checked, { isWhole, isGuarded }).map((one) => ({
      ...one,
      isCertain: certain.has(one.expression.field),
    }));
  }

  /** Nothing for kinds without a schema, or whose objects may have any field. */
  #typed(kind: Kind, served?: ServedResource): readonly TypedKind[] {
    const name = kindName(kind);
    const type = this.#typesOfKinds.get(name) ?? this.#declare(kind);
    this.#typesOfKinds.set(name, type);
    return type.kind === 'struct' ? [{ name, type, served }] : [];
  }

  #declare(kind: Kind): CelType {
    const schema = this.#cluster.schemas.schemaOf(kind);
    return schema === undefined ? DYN : this.#types.declareKind(kind.kind, schema);
  }

  #paramsType({ paramKind }: PolicySpec): CelType {
    if (paramKind === undefined) {
      return DYN;
    }
    const kind = { ...groupVersionOf(paramKind.apiVersion), kind: paramKind.kind };
    return this.#typed(kind)[0]?.type ?? DYN;
  }
}

/** Whether API servers know the fields of all objects: custom resources may have other ones. */
function isBuiltin({ group, kind }: ServedResource): boolean {
  return builtinKinds(group).some((one) => one.kind === kind);
}

interface CertainIssue extends KindIssue {
  readonly isCertain: boolean;
}

function warningOf({ expression, issue, kinds, isCertain }: CertainIssue, root: string): TypeWarning {
  const { message, hints, line, column } = issue;
  const field = `${root}${expression.field}`;
  return { field, expression: expression.text, kinds, message, hints, line, column, isCertain };
}

/** The kinds that constraints of settings match, too. Other versions and groups may be equivalent. */
function constrained(matched: MatchedKinds, constraints: MatchResources | undefined): MatchedKinds {
  const rules = constraints?.resourceRules ?? [];
  if (rules.length === 0) {
    return matched;
  }
  const kinds = matched.kinds.filter(({ resource }) =>
    rules.some(({ resources }) => resources.some((one) => one.startsWith('*') || one.split('/', 1)[0] === resource)),
  );
  return { kinds, isPartial: matched.isPartial };
}
