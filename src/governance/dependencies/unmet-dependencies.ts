// Which dependencies are not met, and why.
import {
  type ComplianceState,
  type KubernetesObject,
  type PendingDependency,
  timeText,
} from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import { complianceOf, isConstraintTemplate } from './compliance-of.ts';
import { objectId, type Requirement } from './dependency.ts';

/** Why a dependency is not met. */
export type UnmetReason =
  /** The cluster does not serve the kind. */
  | 'NoSuchKind'
  | 'NotFound'
  /** The object has no compliance yet. */
  | 'NoStatus'
  /** The object has another state. */
  | 'Mismatch'
  /** The policy exists, and is not placed on this cluster. */
  | 'NotPlaced'
  /** The object itself waits for the template. */
  | 'Cycle'
  /** The object's status was observed for an older generation. */
  | 'Stale'
  /** The controller may not read the object. */
  | 'Forbidden'
  | 'GetFailed';

/** What a cluster knows of an object. */
export type DependencyObject =
  | { readonly type: 'found'; readonly object: KubernetesObject }
  /** `outdated`: the spec that the object is made from has changed since. */
  | { readonly type: 'no-such-kind' | 'not-found' | 'not-placed' | 'outdated' }
  | { readonly type: 'forbidden' | 'failed'; readonly message: string };

export type DependencyLookup = (requirement: Requirement) => DependencyObject;

export interface UnmetDependency extends Requirement {
  /** Undefined if not known. */
  readonly actual: string | undefined;
  readonly reason: UnmetReason;
  /** The reason in upstream's words. */
  readonly text: string;
  /** More about the state of the object, or the way of a cycle; may be empty. */
  readonly detail: string;
}

const NO_MAPPING = 'Could not find an API mapping for the dependency';
const NOT_FOUND = 'Dependency object not found';
const NOT_READ = 'Failed to get the dependency object';
const NO_STATE = 'Failed to find complianceState on the dependency object';
const MISMATCH = 'Compliance mismatch on the dependency object';

/** What an object of a cycle shows: another state, none, or nothing, because it was never applied. */
const CYCLIC: ReadonlySet<UnmetReason> = new Set<UnmetReason>(['Mismatch', 'NotFound', 'NoStatus']);

/** Length of a detail, which may contain a message of another controller. Characters. */
const MAX_DETAIL_LENGTH = 500;

/**
 * The dependencies that are not met, in their order.
 *
 * @param isDeadlocked whether the object of a requirement itself waits for the template
 */
export function unmetDependencies(
  requirements: readonly Requirement[],
  lookup: DependencyLookup,
  isDeadlocked: (requirement: Requirement) => boolean = () => false,
): readonly UnmetDependency[] {
  return requirements.flatMap((requirement) => {
    const unmet = unmetDependency(requirement, lookup(requirement));
    if (unmet === undefined) {
      return [];
    }
    const isCycle = CYCLIC.has(unmet.reason) && isDeadlocked(requirement);
    return [isCycle ? { ...unmet, reason: 'Cycle' as const } : unmet];
  });
}

/** Undefined if the dependency is met. */
export function unmetDependency(requirement: Requirement, found: DependencyObject): UnmetDependency | undefined {
  const unmet = (reason: UnmetReason, text: string, detail = '', actual?: string): UnmetDependency => ({
    ...requirement,
    actual,
    reason,
    text,
    detail: shortened(detail, MAX_DETAIL_LENGTH),
  });
  switch (found.type) {
    case 'no-such-kind':
      return unmet('NoSuchKind', NO_MAPPING);
    case 'not-found':
      // A ConstraintTemplate exists, or it is not compliant.
      return isConstraintTemplate(requirement) && requirement.compliance !== 'Compliant'
        ? undefined
        : unmet('NotFound', NOT_FOUND);
    case 'not-placed':
      return unmet('NotPlaced', NOT_FOUND);
    case 'outdated':
      return unmet('Stale', MISMATCH, 'its status is about an older spec');
    case 'forbidden':
      return unmet('Forbidden', NOT_READ, found.message);
    case 'failed':
      return unmet('GetFailed', NOT_READ, found.message);
    case 'found': {
      const compliance = complianceOf(found.object);
      if ('unknown' in compliance) {
        return unmet(compliance.unknown, compliance.unknown === 'Stale' ? MISMATCH : NO_STATE, compliance.detail);
      }
      return compliance.state === requirement.compliance
        ? undefined
        : unmet('Mismatch', MISMATCH, compliance.detail, compliance.state);
    }
    default:
      return found satisfies never;
  }
}

/**
 * Unmet dependencies as the status lists them. `since` stays while nothing changes.
 *
 * @param now milliseconds since 1970
 */
export function pendingDependencies(
  unmet: readonly UnmetDependency[],
  before: readonly PendingDependency[],
  now: number,
): readonly PendingDependency[] {
  const known = new Map(before.map((pending) => [pendingId(pending), pending.since]));
  return unmet.map(({ apiVersion, kind, namespace, name, compliance, actual, reason, detail }) => {
    const pending = {
      apiVersion,
      kind,
      ...(namespace === '' ? {} : { namespace }),
      name,
      // The schema of the kind has checked it.
      required: compliance as ComplianceState,
      ...(actual === undefined ? {} : { actual }),
      reason,
      ...(reason === 'Cycle' && detail !== '' ? { message: `which waits for it in turn, in the cycle ${detail}` } : {}),
    };
    return { ...pending, since: known.get(pendingId(pending)) ?? timeText(now) };
  });
}

function pendingId(pending: Omit<PendingDependency, 'since'>): string {
  const { namespace = '', required, actual, reason } = pending;
  return JSON.stringify([objectId({ ...pending, namespace }), required, actual ?? null, reason]);
}
