import type { ObjectVerdict } from '../engine/index.ts';
import type { KubernetesObject } from '../resources/index.ts';

/** An existing object. */
export interface AuditedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

/** What a policy says about an object that does not simply pass. */
export interface AuditResult {
  /** As in {@link AuditPolicy}. */
  readonly policy: string;
  readonly mode: ObjectVerdict['mode'];
  /**
   * `fail`: a request to create it would be rejected. `wouldChange`: it would be changed. `skip`: it would be, without the exception.
   * `error`: there is no verdict.
   */
  readonly result: 'fail' | 'wouldChange' | 'skip' | 'error';
  readonly object: AuditedObject;
  readonly message?: string;
  readonly reason?: NonNullable<ObjectVerdict['reason']>;
  /** Of the result `skip`: `namespace/name` of the exception. */
  readonly exception?: string;
  /** Of a group, see ObjectVerdict. Without times, which differ each time. */
  readonly members?: readonly {
    readonly name: string;
    readonly outcome: string;
    readonly allowed: boolean;
    readonly message?: string;
  }[];
}

const INTERNAL_ERROR = 500;

/** What a verdict means for an existing object. */
export function resultOf({
  outcome,
  allowed,
  mutates,
  code,
}: ObjectVerdict): AuditResult['result'] | 'pass' | 'unmatched' {
  switch (outcome) {
    case 'skipped':
      return 'unmatched';
    case 'excepted':
      return 'skip';
    case 'verdict':
      return !allowed ? 'fail' : mutates ? 'wouldChange' : 'pass';
    case 'failed':
      // A denial because of the parameters of a namespace is a verdict.
      return code === INTERNAL_ERROR ? 'error' : 'fail';
    default:
      return 'error';
  }
}

export function auditResult(
  policy: string,
  { mode, message, reason, exception, members }: ObjectVerdict,
  result: AuditResult['result'],
  object: AuditedObject,
): AuditResult {
  return {
    policy,
    mode,
    result,
    object,
    ...(message === undefined ? {} : { message }),
    ...(reason === undefined ? {} : { reason }),
    ...(exception === undefined ? {} : { exception }),
    ...(members === undefined ? {} : { members: members.map(({ ms: _ms, ...member }) => member) }),
  };
}

export function auditedObject({ metadata }: KubernetesObject, apiVersion: string, kind: string): AuditedObject {
  const { namespace, name = '', uid } = metadata;
  return {
    apiVersion,
    kind,
    ...(namespace === undefined ? {} : { namespace }),
    name,
    ...(uid === undefined ? {} : { uid }),
  };
}
