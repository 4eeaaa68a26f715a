import type { CelAuthorizer, CelValue } from '../../cel/index.ts';
import { EngineError } from '../values/errors.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { errorText } from '../../values/index.ts';
import { authorizerValues, namespaceValue, requestValue } from './activation-values.ts';
import { isForNamespace, objectName } from './admission-request.ts';
import type { CelRequest } from './admission-request.ts';
import type { Activation } from './expression-run.ts';
import type { BoundPolicy, LoadedManifests } from './manifests.ts';
import { manifestProblemText } from './manifests.ts';
import { checkMatchConditions } from './match-conditions.ts';
import { matchRequest, NamespaceMissing, unmatchedBecause } from './match-resources.ts';
import type { Match } from './match-resources.ts';
import { mutate, plainJson } from './mutate.ts';
import { checkServed, collectParams } from './params.ts';
import { REASON_CODES } from './policy-spec.ts';
import type { BindingSpec, Reason } from './policy-spec.ts';
import { validate } from './validate.ts';

/** The annotation for failed validations of bindings with the action Audit. */
const VALIDATION_FAILURE_ANNOTATION = 'validation.policy.admission.k8s.io/validation_failure';

/** Since this minor version API servers report all failures, up to a limit, instead of the first. */
const ALL_FAILURES_SINCE = 37;
const MAX_NOTED_FAILURES = 50;

/** The answer of an API server with these policies. */
export interface ManifestVerdict {
  readonly allowed: boolean;
  /** The message for the client. */
  readonly message?: string;
  /** Status code of a denial. */
  readonly code?: number;
  readonly reason?: string;
  /** All denials. API servers answer with the first of validating policies, and list those of mutating ones. */
  readonly causes: readonly string[];
  readonly warnings: readonly string[];
  readonly auditAnnotations: Readonly<Record<string, string>>;
  /** The mutated object; absent without mutations. */
  readonly patchedObject?: JsonValue;
  /** MessageExpressions that gave no message: `ValidatingAdmissionPolicy/name: spec.validations[0].messageExpression: …`. */
  readonly messageProblems: readonly string[];
  /** Evaluated policies with their bindings: `policy/binding`. */
  readonly evaluated: readonly string[];
}

export interface ManifestEvaluationOptions {
  /** Used by `authorizer`. Default: one that answers with an error. */
  readonly authorizer?: CelAuthorizer;
}

const NO_AUTHORIZER: CelAuthorizer = {
  authorize: () => ({ isAllowed: false, reason: '', error: 'no authorizer is available' }),
};

/**
 * Evaluates a request like an API server: mutating policies first, with reinvocation, then validating ones with the
 * mutated object. Defaults that an API server applies in between are missing. Throws EngineError `guest-error` when the
 * manifests have mistakes, or lack the request's namespace when it is needed.
 */
export function evaluateManifests(
  manifests: LoadedManifests,
  request: CelRequest,
  options: ManifestEvaluationOptions = {},
): ManifestVerdict {
  if (manifests.problems.length > 0) {
    const text = manifests.problems.map(manifestProblemText).join('\n');
    throw new EngineError('guest-error', `the manifests cannot be used:\n${text}`);
  }
  return new ManifestEvaluation(manifests, request, options.authorizer ?? NO_AUTHORIZER).run();
}

/** Why no policy with a binding applies to the request. Undefined if one does; a match that fails counts. */
export function unmatchedManifests(manifests: LoadedManifests, request: CelRequest): string | undefined {
  return new ManifestEvaluation(manifests, request, NO_AUTHORIZER).unmatchedBecause();
}

interface Denial {
  readonly message: string;
  readonly reason: Reason;
}

/** A policy with a binding that both match the request, and their parameters. */
interface Invocation {
  readonly bound: BoundPolicy;
  readonly binding: BindingSpec;
  readonly match: Match;
  readonly params: readonly (JsonObject | undefined)[];
}

class ManifestEvaluation {
  readonly #manifests: LoadedManifests;
  readonly #request: CelRequest;
  readonly #authorizer: CelAuthorizer;
  readonly #warnings: string[] = [];
  readonly #messageProblems = new Set<string>();
  readonly #annotations = new Map<string, string>();
  readonly #evaluated = new Set<string>();
  #object: CelValue;
  #isMutated = false;
  /** Failed validations of bindings with the action Audit. */
  readonly #failures: object[] = [];

  constructor(manifests: LoadedManifests, request: CelRequest, authorizer: CelAuthorizer) {
    this.#manifests = manifests;
    this.#request = request;
    this.#authorizer = authorizer;
    this.#object = request.object ?? null;
  }

  run(): ManifestVerdict {
    if (isExempt(this.#request)) {
      return this.#verdict([]);
    }
    const refused = this.#mutate();
    const [refusal] = refused;
    if (refusal !== undefined) {
      // API servers always answer this code, whatever the reason.
      return { ...this.#verdict(refused), allowed: false, ...refusal, code: REASON_CODES.Forbidden };
    }
    const denials = this.#validate();
    const [first] = denials;
    return first === undefined
      ? this.#verdict([])
      : {
          ...this.#verdict(denials),
          allowed: false,
          message: `${this.#subject()} is forbidden: ${first.message}`,
          reason: first.reason,
          code: REASON_CODES[first.reason],
        };
  }

  unmatchedBecause(): string | undefined {
    if (isExempt(this.#request)) {
      return 'API servers evaluate no admission policy for this resource';
    }
    const { mutating, validating } = this.#manifests;
    const reasons: string[] = [];
    for (const bound of [...mutating, ...validating]) {
      const reason = this.#unmatchedPolicy(bound);
      if (reason === undefined) {
        return undefined;
      }
      reasons.push(reason);
    }
    return reasons.length === 1
      ? reasons[0]
      : reasons.map((reason, index) => `${[...mutating, ...validating][index]?.name ?? ''}: ${reason}`).join('; ');
  }

  /** Undefined if the policy applies. */
  #unmatchedPolicy(bound: BoundPolicy): string | undefined {
    let hasFailed = false;
    const invocations = this.#invocations([bound], () => (hasFailed = true));
    if (hasFailed) {
      return undefined;
    }
    if (invocations.length === 0) {
      return this.#unboundBecause(bound);
    }
    const conditions = new Set<string>();
    for (const { match, params } of invocations) {
      for (const param of params) {
        const activation = { ...this.#activation(bound, match), params: param ?? null };
        const matching = checkMatchConditions(bound.policy, activation);
        if ('error' in matching || matching.matches) {
          return undefined;
        }
        conditions.add(
          matching.condition === undefined
            ? 'its matchConditions fail, which failurePolicy Ignore ignores'
            : `its matchCondition ${JSON.stringify(matching.condition)} is false`,
        );
      }
    }
    return [...conditions].join(', ');
  }

  #unboundBecause({ policy, bindings }: BoundPolicy): string {
    const { namespaces } = this.#manifests;
    const { matchConstraints } = policy.spec;
    const unmet = matchConstraints && unmatchedBecause(matchConstraints, this.#request, namespaces);
    if (matchConstraints === undefined || unmet !== undefined) {
      return `its matchConstraints: ${unmet ?? 'there are none'}`;
    }
    if (bindings.length === 0) {
      return 'no binding names it';
    }
    return bindings
      .map(({ name, matchResources }) => {
        const why = matchResources && unmatchedBecause(matchResources, this.#request, namespaces);
        return why === undefined
          ? `there are no parameters for the binding ${name}, which allows that`
          : `matchResources of the binding ${name}: ${why}`;
      })
      .join('; ');
  }

  #verdict(denials: readonly Denial[]): ManifestVerdict {
    return {
      allowed: true,
      causes: denials.map(({ message }) => message),
      warnings: this.#warnings,
      messageProblems: [...this.#messageProblems],
      auditAnnotations: this.#auditAnnotations(),
      ...(this.#isMutated ? { patchedObject: plainJson(this.#object) } : {}),
      evaluated: [...this.#evaluated],
    };
  }

  /** Older API servers set the annotation for the first failure, and cannot set it again for the next. */
  #auditAnnotations(): Readonly<Record<string, string>> {
    const noted =
      this.#manifests.kubernetesVersion >= ALL_FAILURES_SINCE
        ? this.#failures.slice(0, MAX_NOTED_FAILURES)
        : this.#failures.slice(0, 1);
    const failures = noted.length === 0 ? {} : { [VALIDATION_FAILURE_ANNOTATION]: goJson(noted) };
    return { ...Object.fromEntries(this.#annotations), ...failures };
  }

  /** `deployments.apps "web"` */
  #subject(): string {
    const { group, resource } = this.#request.requestResource;
    return `${group === '' ? resource : `${resource}.${group}`} ${JSON.stringify(objectName(this.#request))}`;
  }

  // --- mutating ----------------------------------------------------------------------------------------------------

  #mutate(): Denial[] {
    const denials: Denial[] = [];
    const refuse = (bound: BoundPolicy, binding: BindingSpec | undefined, text: string, reason: Reason): void => {
      if (bound.policy.spec.failurePolicy === 'Fail') {
        const subject =
          binding === undefined
            ? `policy ${JSON.stringify(bound.name)}`
            : `policy '${bound.name}' with binding '${binding.name}'`;
        denials.push({ message: `${subject} denied request: ${text}`, reason });
      }
    };
    const invocations = this.#invocations(this.#manifests.mutating, (bound, binding, error) =>
      refuse(bound, binding, configurationText(binding, error), 'Forbidden'),
    );
    const errors: Denial[] = denials.splice(0);
    const apply = ({ bound, binding, match, params }: Invocation): void => {
      const base = this.#activation(bound, match);
      for (const param of params) {
        const activation = { ...base, object: this.#object, params: param ?? null };
        const result = mutate(bound.policy, activation);
        this.#object = result.object;
        this.#isMutated ||= result.isMutated;
        for (const error of result.errors) {
          refuse(bound, binding, error, 'Invalid');
        }
      }
    };
    invocations.forEach(apply);
    if (this.#isMutated && denials.length + errors.length === 0) {
      invocations.filter(({ bound }) => bound.policy.spec.reinvocationPolicy === 'IfNeeded').forEach(apply);
    }
    return [...errors, ...denials];
  }

  // --- validating --------------------------------------------------------------------------------------------------

  #validate(): Denial[] {
    const denials: Denial[] = [];
    const deny = (bound: BoundPolicy, binding: BindingSpec | undefined, text: string, reason: Reason): void => {
      const subject = binding === undefined ? '' : ` with binding '${binding.name}'`;
      const message = `ValidatingAdmissionPolicy '${bound.name}'${subject} denied request: ${text}`;
      denials.push({ message, reason });
    };
    for (const bound of this.#manifests.validating) {
      const annotations = new Map<string, Set<string>>();
      const invocations = this.#invocations([bound], (_bound, binding, error) => {
        if (bound.policy.spec.failurePolicy === 'Fail') {
          deny(bound, binding, configurationText(binding, error), 'Invalid');
        }
      });
      for (const invocation of invocations) {
        this.#validateOne(invocation, annotations, (text, reason) => deny(bound, invocation.binding, text, reason));
      }
      for (const [key, values] of annotations) {
        this.#annotations.set(`${bound.name}/${key}`, [...values].join(', '));
      }
    }
    return denials;
  }

  #validateOne(
    { bound, binding, match, params }: Invocation,
    annotations: Map<string, Set<string>>,
    deny: (text: string, reason: Reason) => void,
  ): void {
    const base = this.#activation(bound, match);
    for (const param of params) {
      const activation = { ...base, object: this.#object, params: param ?? null };
      const result = validate(bound.policy, activation);
      for (const [index, { isDenied, message, reason }] of result.decisions.entries()) {
        for (const action of isDenied ? binding.validationActions : []) {
          if (action === 'Deny') {
            deny(message, reason);
          } else if (action === 'Warn') {
            this.#warnings.push(
              `Validation failed for ValidatingAdmissionPolicy '${bound.name}' with binding '${binding.name}': ${message}`,
            );
          } else {
            const { validationActions } = binding;
            const failure = {
              message,
              policy: bound.name,
              binding: binding.name,
              expressionIndex: index,
              validationActions,
            };
            this.#failures.push(failure);
          }
        }
      }
      for (const problem of result.messageProblems) {
        this.#messageProblems.add(`ValidatingAdmissionPolicy/${bound.name}: spec.${problem}`);
      }
      for (const { key, value } of result.annotations) {
        annotations.set(key, (annotations.get(key) ?? new Set()).add(value));
      }
      for (const error of result.annotationErrors) {
        deny(error, 'Invalid');
      }
    }
  }

  // --- both --------------------------------------------------------------------------------------------------------

  #invocations(
    policies: readonly BoundPolicy[],
    onError: (bound: BoundPolicy, binding: BindingSpec | undefined, error: unknown) => void,
  ): Invocation[] {
    const { params, namespaces } = this.#manifests;
    const request = this.#current();
    const invocations: Invocation[] = [];
    for (const bound of policies) {
      const { matchConstraints, paramKind } = bound.policy.spec;
      const match = attempt(
        () => {
          const found = matchConstraints && matchRequest(matchConstraints, request, namespaces);
          if (found !== undefined && bound.bindings.length > 0) {
            checkServed(paramKind, params);
          }
          return found;
        },
        (error) => onError(bound, undefined, error),
      );
      for (const binding of match === undefined ? [] : bound.bindings) {
        const found = attempt(
          () =>
            binding.matchResources !== undefined &&
            matchRequest(binding.matchResources, request, namespaces) === undefined
              ? undefined
              : collectParams(paramKind, binding.paramRef, request.namespace, params),
          (error) => onError(bound, binding, error),
        );
        if (match !== undefined && found !== undefined && found.length > 0) {
          this.#evaluated.add(`${bound.name}/${binding.name}`);
          invocations.push({ bound, binding, match, params: found });
        }
      }
    }
    return invocations;
  }

  /** The request with the current object. */
  #current(): CelRequest {
    return this.#isMutated ? { ...this.#request, object: this.#object as JsonObject } : this.#request;
  }

  #activation(bound: BoundPolicy, match: Match): Activation {
    const request = this.#request;
    return {
      object: this.#object,
      oldObject: request.oldObject ?? null,
      request: requestValue(request, match),
      namespaceObject: this.#namespace(),
      params: null,
      ...(bound.policy.usesAuthorizer ? authorizerValues(request, this.#authorizer) : {}),
    };
  }

  #namespace(): CelValue {
    const request = this.#request;
    if (request.namespace === '' || isForNamespace(request)) {
      return null;
    }
    const namespace = this.#manifests.namespaces.get(request.namespace);
    if (namespace !== undefined) {
      return namespaceValue(namespace);
    }
    const isUsed = [...this.#manifests.validating, ...this.#manifests.mutating].some(
      ({ policy }) => policy.namespaceUse !== undefined,
    );
    if (isUsed) {
      const missing = new NamespaceMissing(request.namespace).message;
      throw new EngineError('guest-error', `${missing}: add the manifest of the Namespace, the policy looks at it`);
    }
    // No expression uses it, so only the fields that every namespace has.
    return namespaceValue({ metadata: { name: request.namespace } });
  }
}

/**
 * Resources for which API servers evaluate no admission policy: the policies themselves and their bindings, so that they can
 * always be mended, and reviews, without which a cluster does not work.
 */
const EXEMPT: ReadonlySet<string> = new Set([
  'admissionregistration.k8s.io/validatingadmissionpolicies',
  'admissionregistration.k8s.io/validatingadmissionpolicybindings',
  'admissionregistration.k8s.io/mutatingadmissionpolicies',
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings',
  'authentication.k8s.io/selfsubjectreviews',
  'authentication.k8s.io/tokenreviews',
  'authorization.k8s.io/localsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectrulesreviews',
  'authorization.k8s.io/subjectaccessreviews',
]);

function isExempt({ requestResource: { group, resource } }: CelRequest): boolean {
  return EXEMPT.has(`${group}/${resource}`);
}

function attempt<Value>(run: () => Value, onError: (error: unknown) => void): Value | undefined {
  try {
    return run();
  } catch (error) {
    onError(error);
    return undefined;
  }
}

function configurationText(binding: BindingSpec | undefined, error: unknown): string {
  return `failed to configure ${binding === undefined ? 'policy' : 'binding'}: ${errorText(error)}`;
}

/** Serializes JSON like Go, which escapes `<`, `>`, `&`, U+2028 and U+2029. */
function goJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[<>&\u2028\u2029]/gu,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
