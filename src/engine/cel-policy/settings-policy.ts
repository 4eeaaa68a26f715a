import type { ContextAwareResource } from '../../resources/index.ts';
import type { ParamRef } from './policy-spec.ts';
import { authorizerValues, namespaceValue } from './activation-values.ts';
import { isForNamespace } from './admission-request.ts';
import type { CelRequest } from './admission-request.ts';
import { compilePolicy } from './compiled-policy.ts';
import type { CompiledPolicy } from './compiled-policy.ts';
import { expressionsProblem } from './expression-lengths.ts';
import type { Activation } from './expression-run.ts';
import type { FieldProblem } from '../values/field-problem.ts';
import { checkMatchConditions } from './match-conditions.ts';
import { matchRequest, type MatchResources, NamespaceMissing, unmatchedBecause } from './match-resources.ts';
import { mutate, plainJson } from './mutate.ts';
import { type NullRead, nullReads } from './null-reads.ts';
import { collectParams, ParametersMissing } from './params.ts';
import { ACCEPTED, denied, verdictOf } from './policy-verdict.ts';
import type { PolicyEnvironments } from './policy-environment.ts';
import { readSettings } from './read-policy.ts';
import { NAMESPACE_KIND } from './sources.ts';
import type { NamespaceSource, ParamSource, ParamKind } from './sources.ts';
import { validate } from './validate.ts';
import type { ValidationDecision } from './validate.ts';
import type { CelAuthorizer, CelValue } from '../../cel/index.ts';
import { EngineError } from '../values/errors.ts';
import type { JsonObject } from '../values/json-text.ts';
import { errorText } from '../../values/index.ts';
import type { GuestVerdict } from '../verdict/guest-verdict.ts';

/** A policy, or at least one mistake. */
export type ParsedSettings =
  | { readonly policy: SettingsPolicy; readonly problems?: undefined }
  | { readonly policy?: undefined; readonly problems: readonly FieldProblem[] };

/** Sources of data beyond the request. Called only when the policy needs them. */
export interface PolicySources {
  readonly params: ParamSource;
  readonly namespaces: NamespaceSource;
  readonly authorizer: CelAuthorizer;
}

/**
 * A right that settings need of their policy: to change objects, to read a kind as a context-aware policy, or to ask what the
 * user of a request may do, or what a service account may do.
 */
export type SettingsNeed =
  | { readonly right: 'mutate' | 'authorize' | 'authorize-account'; readonly field: string }
  | { readonly right: 'read'; readonly field: string; readonly resource: ContextAwareResource };

/** Parses and compiles settings of `builtin:cel`. Never throws. */
export function parseSettings(json: unknown, environments: PolicyEnvironments): ParsedSettings {
  const problems: FieldProblem[] = [];
  const { spec, paramRef } = readSettings(json, problems);
  const tooLong = expressionsProblem(spec);
  if (tooLong !== undefined) {
    return { problems: [...problems, tooLong] };
  }
  const policy = compilePolicy(spec, environments, problems);
  return problems.length > 0 ? { problems: problems } : { policy: new SettingsPolicy(policy, paramRef) };
}

/** A policy from settings. */
class SettingsPolicy {
  readonly compiled: CompiledPolicy;
  readonly paramRef: ParamRef | undefined;

  constructor(compiled: CompiledPolicy, paramRef: ParamRef | undefined) {
    this.compiled = compiled;
    this.paramRef = paramRef;
  }

  /** The requests that the settings match; undefined: all. */
  get constraints(): MatchResources | undefined {
    return this.compiled.spec.matchConstraints;
  }

  /** The rights without which the policy rejects every request that reaches the field. */
  get needs(): readonly SettingsNeed[] {
    const { namespaceUse, authorizerUse, accountUses, spec } = this.compiled;
    const { kind, paramKind, matchConstraints } = spec;
    const needs: SettingsNeed[] = kind === 'mutating' ? [{ right: 'mutate', field: 'mutations' }] : [];
    const read = (field: string, resource: ParamKind): void => {
      needs.push({ right: 'read', field, resource });
    };
    if (paramKind !== undefined) {
      read('paramKind', paramKind);
    }
    if (matchConstraints?.namespaceSelector.isEmpty === false) {
      read('matchConstraints.namespaceSelector', NAMESPACE_KIND);
    }
    if (namespaceUse !== undefined) {
      read(namespaceUse, NAMESPACE_KIND);
    }
    if (authorizerUse !== undefined) {
      needs.push({ right: 'authorize', field: authorizerUse });
    }
    needs.push(...accountUses.map((field) => ({ right: 'authorize-account', field }) as const));
    return needs;
  }

  /** Expressions that fail on every request without an `object`, or without an `oldObject`. */
  get nullReads(): readonly NullRead[] {
    return nullReads(this.compiled);
  }

  /**
   * Evaluates a request. A policy that cannot be evaluated denies, unless its failurePolicy is Ignore. Throws
   * EngineError `capability-failed` when an expression needs a namespace that cannot be read.
   * @param onNote called with each messageExpression that gave no message. Default: not at all
   */
  evaluate(
    request: CelRequest,
    sources: PolicySources,
    onNote: (text: string) => void = () => undefined,
  ): GuestVerdict {
    const { spec } = this.compiled;
    const { matchConstraints, paramKind } = spec;
    let params: readonly (JsonObject | undefined)[];
    try {
      if (matchConstraints !== undefined && matchRequest(matchConstraints, request, sources.namespaces) === undefined) {
        return ACCEPTED;
      }
    } catch (error) {
      return this.#misconfigured('policy', error);
    }
    try {
      params = collectParams(paramKind, this.paramRef, request.namespace, sources.params);
    } catch (error) {
      return this.#misconfigured('binding', error);
    }
    if (params.length === 0) {
      return ACCEPTED;
    }
    const activation = this.#activation(request, sources);
    return spec.kind === 'mutating' ? this.#mutate(activation, params) : this.#validate(activation, params, onNote);
  }

  /**
   * Why the settings do not apply to a request. Undefined if they do, or if only an evaluation says it: with parameters, the
   * authorizer, a namespace that is not known, or a condition that fails.
   */
  unmatchedBecause(request: CelRequest, namespaces: NamespaceSource): string | undefined {
    const { spec, usesAuthorizer } = this.compiled;
    try {
      const unmet = spec.matchConstraints && unmatchedBecause(spec.matchConstraints, request, namespaces);
      if (unmet !== undefined) {
        return `matchConstraints: ${unmet}`;
      }
    } catch (error) {
      if (!(error instanceof NamespaceMissing)) {
        throw error;
      }
      return undefined;
    }
    if (spec.paramKind !== undefined || usesAuthorizer) {
      return undefined;
    }
    const { object = null, oldObject = null } = request;
    const activation = { object, oldObject, request: request.json, namespaceObject: null, params: null };
    const matching = checkMatchConditions(this.compiled, activation);
    return 'matches' in matching && !matching.matches && matching.condition !== undefined
      ? `the matchCondition ${JSON.stringify(matching.condition)} is false`
      : undefined;
  }

  /** The message of API servers when matching or parameters fail. */
  #misconfigured(what: 'policy' | 'binding', error: unknown): GuestVerdict {
    if (this.compiled.spec.failurePolicy === 'Ignore') {
      return ACCEPTED;
    }
    const verdict = denied(`failed to configure ${what}: ${errorText(error)}`);
    return error instanceof ParametersMissing && error.isOfNamespace ? { ...verdict, lacksParameters: true } : verdict;
  }

  #activation(request: CelRequest, sources: PolicySources): Activation {
    const { namespaceUse, usesAuthorizer } = this.compiled;
    return {
      object: request.object ?? null,
      oldObject: request.oldObject ?? null,
      request: request.json,
      namespaceObject: namespaceUse === undefined ? null : namespaceOf(request, sources.namespaces),
      params: null,
      ...(usesAuthorizer ? authorizerValues(request, sources.authorizer) : {}),
    };
  }

  #validate(
    activation: Activation,
    params: readonly (JsonObject | undefined)[],
    onNote: (text: string) => void,
  ): GuestVerdict {
    const denials: ValidationDecision[] = [];
    const annotations = new Map<string, Set<string>>();
    for (const param of params) {
      const result = validate(this.compiled, { ...activation, params: param ?? null });
      denials.push(...result.decisions.filter(({ isDenied }) => isDenied));
      result.messageProblems.forEach(onNote);
      for (const message of result.annotationErrors) {
        denials.push({ isDenied: true, message, reason: 'Invalid' });
      }
      for (const { key, value } of result.annotations) {
        annotations.set(key, (annotations.get(key) ?? new Set()).add(value));
      }
    }
    const auditAnnotations =
      annotations.size === 0
        ? null
        : Object.fromEntries(Array.from(annotations, ([key, values]) => [key, [...values].join(', ')]));
    return verdictOf(denials, auditAnnotations);
  }

  #mutate(activation: Activation, params: readonly (JsonObject | undefined)[]): GuestVerdict {
    let { object } = activation;
    let isMutated = false;
    const errors: string[] = [];
    for (const param of params) {
      const result = mutate(this.compiled, { ...activation, object, params: param ?? null });
      object = result.object;
      isMutated ||= result.isMutated;
      errors.push(...result.errors);
    }
    if (errors.length > 0 && this.compiled.spec.failurePolicy === 'Fail') {
      return denied([...new Set(errors)].join('; '));
    }
    return isMutated ? { ...ACCEPTED, mutatedObject: plainJson(object) } : ACCEPTED;
  }
}

/** As in API servers, a namespace that cannot be read denies the request even with failurePolicy Ignore. */
function namespaceOf(request: CelRequest, namespaces: NamespaceSource): CelValue {
  if (request.namespace === '' || isForNamespace(request)) {
    return null;
  }
  let namespace: JsonObject | undefined;
  try {
    namespace = namespaces.get(request.namespace);
  } catch (error) {
    const text = `the policy looks at namespaceObject, but the namespace "${request.namespace}" cannot be read: ${errorText(error)}`;
    throw new EngineError('capability-failed', text, { cause: error });
  }
  if (namespace === undefined) {
    throw new EngineError('capability-failed', new NamespaceMissing(request.namespace).message);
  }
  return namespaceValue(namespace);
}
