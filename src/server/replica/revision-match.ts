// The requests that a revision's policy matches. Revisions come from the controller, but are validated nevertheless.
import { policyMatch } from '../../resources/index.ts';
import type { AdmissionPolicyObject, PolicyMatch, PolicyRevision } from '../../resources/index.ts';

/**
 * The match rules of a revision; undefined when they are invalid. The controller then creates no webhook for it.
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

/** Fields of a policy's spec that {@link revisionMatch} reads. */
const MATCH_FIELDS = [
  'mutating',
  'failurePolicy',
  'mode',
  'matchPolicy',
  'rules',
  'namespaceSelector',
  'objectSelector',
  'matchConditions',
  'timeoutSeconds',
  'allowInsideAdmissionControllerNamespace',
  'podTemplates',
] as const;

/** The fields of a policy's spec that determine matching and failurePolicy. */
export function matchFields(snapshot: unknown): unknown {
  if (typeof snapshot !== 'object' || snapshot === null) {
    return undefined;
  }
  const known = MATCH_FIELDS.filter((field) => Object.hasOwn(snapshot, field)).map((field) => [
    field,
    (snapshot as Readonly<Record<string, unknown>>)[field],
  ]);
  // The presence of members marks a group.
  return Object.fromEntries(Object.hasOwn(snapshot, 'policies') ? [...known, ['policies', {}]] : known);
}
