import type { Selector } from '../../resources/index.ts';
import type { MatchResources } from './match-resources.ts';
import type { ParamKind } from './sources.ts';

/** A parsed policy, from settings or from a manifest. */
export interface PolicySpec {
  readonly kind: 'validating' | 'mutating';
  /** Undefined for settings, which have no name. */
  readonly name: string | undefined;
  readonly failurePolicy: FailurePolicyType;
  readonly paramKind: ParamKind | undefined;
  readonly matchConstraints: MatchResources | undefined;
  readonly matchConditions: readonly NamedExpression[];
  readonly variables: readonly NamedExpression[];
  readonly validations: readonly ValidationSpec[];
  readonly auditAnnotations: readonly AuditAnnotationSpec[];
  readonly mutations: readonly MutationSpec[];
  readonly reinvocationPolicy: ReinvocationPolicy;
}

export type FailurePolicyType = 'Fail' | 'Ignore';
type ReinvocationPolicy = 'Never' | 'IfNeeded';
export type PatchType = 'JSONPatch' | 'ApplyConfiguration';
export type ValidationAction = 'Deny' | 'Warn' | 'Audit';
export type Reason = 'Unauthorized' | 'Forbidden' | 'Invalid' | 'RequestEntityTooLarge';

/** Status codes of API servers by reason. */
export const REASON_CODES: Readonly<Record<Reason, number>> = {
  Unauthorized: 401,
  Forbidden: 403,
  Invalid: 422,
  RequestEntityTooLarge: 413,
};

/** Maximum number of match conditions of a policy. */
export const MAX_MATCH_CONDITIONS = 64;
/** Maximum number of audit annotations of a policy. */
export const MAX_AUDIT_ANNOTATIONS = 20;
/** Maximum size of an audit annotation's expression, in bytes. */
export const MAX_VALUE_EXPRESSION_BYTES = 5 * 1024;
/** Maximum size of a messageExpression's result, in bytes; a longer one is ignored. */
export const MAX_MESSAGE_BYTES = 5 * 1024;
/** Maximum size of an audit annotation's value, in bytes; a longer one is cut. */
export const MAX_ANNOTATION_VALUE_BYTES = 10 * 1024;

export interface NamedExpression {
  readonly name: string;
  readonly expression: string;
}

export interface ValidationSpec {
  readonly expression: string;
  /** Empty: none. */
  readonly message: string;
  /** Empty: none. */
  readonly messageExpression: string;
  readonly reason: Reason;
}

export interface AuditAnnotationSpec {
  readonly key: string;
  readonly valueExpression: string;
}

export interface MutationSpec {
  readonly patchType: PatchType;
  readonly expression: string;
}

export interface ParamRef {
  readonly name: string | undefined;
  readonly namespace: string | undefined;
  readonly selector: Selector | undefined;
  readonly parameterNotFoundAction: 'Allow' | 'Deny';
}

/** A parsed binding. */
export interface BindingSpec {
  readonly kind: PolicySpec['kind'];
  readonly name: string;
  readonly policyName: string;
  readonly paramRef: ParamRef | undefined;
  readonly matchResources: MatchResources | undefined;
  /** Only for bindings of validating policies. */
  readonly validationActions: readonly ValidationAction[];
}
