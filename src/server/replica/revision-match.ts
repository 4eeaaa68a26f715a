// Which requests a revision's policy is for. Revisions come from the controller, and are still read as if they did not.
import { policyMatch } from '../../resources/index.ts';
import type { AdmissionPolicyObject, PolicyMatch, PolicyRevision } from '../../resources/index.ts';

/**
 * Which requests a revision is for; undefined when that cannot be understood. Then the controller does not understand it
 * either, and no API server asks about it.
 * @param productNamespace see MatchOptions
 */
export function revisionMatch({ spec }: PolicyRevision, productNamespace: string): PolicyMatch | undefined {
  const { policy, snapshot, ownWebhook } = spec;
  try {
    const { kind, name, namespace } = policy;
    const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
    const subject: unknown = { kind, metadata, spec: snapshot };
    return policyMatch(subject as AdmissionPolicyObject, { productNamespace, ownWebhook: ownWebhook === true });
  } catch {
    return undefined;
  }
}

/** What of a policy's spec {@link revisionMatch} looks at. */
const MATCH_FIELDS = [
  'mutating',
  'failurePolicy',
  'matchPolicy',
  'rules',
  'namespaceSelector',
  'objectSelector',
  'matchConditions',
  'timeoutSeconds',
  'allowInsideAdmissionControllerNamespace',
] as const;

/** The part of a policy's spec that says which requests it is for, and what becomes of them when it cannot judge. */
export function matchedBy(snapshot: unknown): unknown {
  if (typeof snapshot !== 'object' || snapshot === null) {
    return undefined;
  }
  const known = MATCH_FIELDS.filter((field) => Object.hasOwn(snapshot, field)).map((field) => [
    field,
    (snapshot as Readonly<Record<string, unknown>>)[field],
  ]);
  // That there are members says that it is a group.
  return Object.fromEntries(Object.hasOwn(snapshot, 'policies') ? [...known, ['policies', {}]] : known);
}
