// Manifests that are meant to be policies: without an error, a slip in the kind or the group would leave a policy out.
import { builtinKinds, groupVersionOf, OWN_KINDS, POLICIES_GROUP } from '../../resources/index.ts';
import { nearestKey, own, textOf, unknownKeyHint, valueAt } from '../../values/index.ts';
import { placedMessage, type PlacedManifest } from './placed-manifests.ts';

const KUBERNETES_GROUP = 'admissionregistration.k8s.io';

/** All kinds of the groups that have policies. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  [POLICIES_GROUP]: OWN_KINDS.filter(({ group }) => group === POLICIES_GROUP).map(({ kind }) => kind),
  [KUBERNETES_GROUP]: builtinKinds(KUBERNETES_GROUP).map(({ kind }) => kind),
};
const GROUPS = Object.keys(KINDS);
const POLICY = /AdmissionPolicy(?:Group|Binding)?$/;

/** The mistake, with its place, in a manifest that is neither of our policies nor of those of Kubernetes. */
export function misspelledPolicy(placed: PlacedManifest): string | undefined {
  const { object } = placed;
  const apiVersion = textOf(own(object, 'apiVersion'));
  const kind = textOf(own(object, 'kind'));
  const { group } = groupVersionOf(apiVersion);
  const where = `${kind} ${textOf(valueAt(object, 'metadata', 'name')) || 'without a name'}`;
  const known = Object.hasOwn(KINDS, group) ? KINDS[group] : undefined;
  if (known !== undefined) {
    const hint = unknownKeyHint(kind, known);
    return known.includes(kind)
      ? undefined
      : placedMessage(placed, ['kind'], `${where}: kind: ${group} has no kind ${kind}, ${hint}`);
  }
  const meant = groupMeant(group, kind);
  return meant === undefined
    ? undefined
    : placedMessage(
        placed,
        ['apiVersion'],
        `${where}: apiVersion: expected ${meant}/v1, got ${apiVersion === '' ? 'none' : apiVersion}`,
      );
}

/** The group of a kind of policy, also of a misspelled one if the group resembles it. */
function groupMeant(group: string, kind: string): string | undefined {
  const ofKind = GROUPS.find((one) => POLICY.test(kind) && KINDS[one]?.includes(kind));
  const nearest = nearestKey(group, GROUPS);
  const isPolicy = nearest !== undefined && POLICY.test(nearestKey(kind, KINDS[nearest] ?? []) ?? '');
  return ofKind ?? (isPolicy ? nearest : undefined);
}
