// The two versions of a policy that a preview compares: of a cluster, and of files.
import { type AuditedInstallation, auditPolicy, type AuditPolicy } from '../../audit/index.ts';
import { unlessForbidden, unlessGone } from '../../cluster/index.ts';
import { pinnedSpec } from '../../control/index.ts';
import { moduleUses } from '../../engine/definition/index.ts';
import type { JsonObject } from '../../engine/index.ts';
import { keptServing, listedRevisions, listRevisions } from '../../rollout/history/index.ts';
import {
  type AdmissionPolicyObject,
  type PolicyRevision,
  type RevisionSummary,
  snapshotOf,
} from '../../resources/index.ts';
import { textOf, valueAt } from '../../values/index.ts';
import { policyOfFile } from '../audit/audit-policies.ts';
import type { Connected } from '../cluster/cluster-flags.ts';
import { folderUrl } from '../daemon-flags.ts';
import { documentName } from '../document.ts';
import { CliError, usageError } from '../errors.ts';
import type { FilePolicy } from '../policy/file-policy.ts';
import { choosePolicy, NO_POLICY, type PolicyFiles, readPolicies } from '../policy/policy-files.ts';
import {
  importedPolicies,
  isBindingOf,
  kubernetesManifests,
  type KubernetesPolicy,
  kubernetesPolicyOf,
  manifestsWithBindings,
  withOwnBindings,
} from './preview/kubernetes-policies.ts';
import { revisionOf, REVISIONS_RIGHT } from './read-revisions.ts';
import { requiredSpec } from './readable-revisions.ts';
import { admissionTarget, REVISION_NUMBER, type RolloutTarget, targetOf } from './rollout-target.ts';

export interface VersionFlags {
  readonly filename?: string;
  readonly from?: string;
  readonly binding?: readonly string[];
  readonly productNamespace: string;
  readonly modulesDir?: string;
}

/** What both versions are read with. */
interface Reading extends VersionFlags {
  readonly installation: AuditedInstallation;
}

/** A version of a policy. */
export interface PreviewedVersion {
  /** `revision 3`, `new.yaml`. */
  readonly label: string;
  /** Empty: there is none. */
  readonly policies: readonly AuditPolicy[];
  /** Objects beside it in files, such as parameters. */
  readonly objects: readonly JsonObject[];
}

export interface PreviewedVersions {
  /** `cap/pinned-images` */
  readonly name: string;
  readonly old: PreviewedVersion;
  readonly new: PreviewedVersion;
}

type Cluster = Pick<Connected, 'cluster' | 'namespace'>;

/** @param connected absent: all is in files @throws CliError, ApiError */
export async function previewedVersions(
  args: readonly string[],
  connected: Cluster | undefined,
  flags: Reading,
): Promise<PreviewedVersions> {
  const paths = [...(flags.filename === undefined ? [] : [flags.filename]), ...(flags.binding ?? [])];
  const files = paths.length === 0 ? undefined : await readPolicies(paths);
  const where = paths.map(documentName).join(', ');
  if (files !== undefined && files.policies.length > 0) {
    const chosen = choosePolicy(files.policies, nameOf(args), where, 'POLICY');
    return await versionsOfFile(chosen, { files, where }, connected, flags);
  }
  if (args.length === 0 && files !== undefined) {
    throw new CliError(`${where} has no policy`, {
      hint: `${NO_POLICY} With changed parameters, name the policy, too.`,
    });
  }
  if (args.length === 0) {
    throw usageError(
      'expected the name of a policy, or a file with it',
      'Such as cap/pinned-images, or -f stricter.yaml.',
    );
  }
  if (connected === undefined) {
    throw usageError(`${where}: expected a policy`, 'Without a cluster, -f and --from name files with it.');
  }
  return await versionsInCluster(args, connected, flags, files && { files, where });
}

/** As {@link choosePolicy} takes it: `cap one`, `cap/one`, and the full name that other commands print. */
function nameOf(args: readonly string[]): string | undefined {
  const name = args.join('/').replace(/^([^/.]+)\.[^/]*\//, '$1/');
  return name === '' ? undefined : name;
}

interface Named {
  readonly files: PolicyFiles;
  readonly where: string;
}

/** A policy of a file, and what it replaces. */
async function versionsOfFile(
  policy: FilePolicy,
  { files, where }: Named,
  connected: Cluster | undefined,
  flags: Reading,
): Promise<PreviewedVersions> {
  const { name, manifest, manifests } = policy;
  const objects = files.objects.map(({ object }) => object);
  if (manifest === undefined && manifests === undefined) {
    throw new CliError(`${where}: expected a manifest of a policy, got the entry ${name} of a policies file`, {
      hint: 'An entry has no rules that say which objects it is for.',
    });
  }
  if (manifests !== undefined) {
    const own = await manifestsWithBindings(manifests, connected);
    const old = await oldOfKubernetes(policy, connected, flags);
    return { name, old, new: { label: where, policies: await importedPolicies(own, name), objects } };
  }
  const changed = { label: where, policies: [await policyOfFile(policy, flags.installation)], objects };
  return { name, old: await oldOfFile(policy, connected, flags), new: changed };
}

async function oldOfFile(
  policy: FilePolicy,
  connected: Cluster | undefined,
  flags: Reading,
): Promise<PreviewedVersion> {
  const fromFile = await versionOfFile(policy.name, flags);
  if (fromFile !== undefined || connected === undefined) {
    return fromFile ?? NONE;
  }
  const target = await targetOfManifest(policy.manifest ?? {}, connected, flags.productNamespace);
  return target === undefined ? { ...NONE, label: 'not in the cluster' } : await servingVersion(target, flags);
}

const NONE: PreviewedVersion = { label: 'none', policies: [], objects: [] };

/** The version that `--from` names a file of. */
async function versionOfFile(name: string, { from, installation }: Reading): Promise<PreviewedVersion | undefined> {
  if (from === undefined || REVISION_NUMBER.test(from)) {
    return undefined;
  }
  const { policies, objects } = await readPolicies([from]);
  const found = choosePolicy(policies, name, documentName(from), '--from');
  const read =
    found.manifests === undefined
      ? [await policyOfFile(found, installation)]
      : await importedPolicies(withOwnBindings(found.manifests), name);
  return { label: documentName(from), policies: read, objects: objects.map(({ object }) => object) };
}

/** The policy in the cluster that a manifest is of; undefined if there is none. */
async function targetOfManifest(
  manifest: JsonObject,
  { cluster, namespace }: Cluster,
  productNamespace: string,
): Promise<RolloutTarget | undefined> {
  const { apiVersion, kind } = manifest;
  const type = await cluster.discovery.find(textOf(apiVersion), textOf(kind));
  const name = textOf(valueAt(manifest, 'metadata', 'name'));
  if (type === undefined) {
    return undefined;
  }
  const inNamespace = { namespace: textOf(valueAt(manifest, 'metadata', 'namespace')) || namespace, name };
  const key = type.namespaced ? inNamespace : { name };
  const policy = await unlessGone(cluster.get(type, key));
  return policy === undefined
    ? undefined
    : {
        cluster,
        type,
        key,
        name: `${type.singular}/${name}`,
        policy: policy as AdmissionPolicyObject,
        productNamespace,
      };
}

/** Both versions of a policy in the cluster: what serves, and what is applied. */
async function versionsInCluster(
  args: readonly string[],
  connected: Cluster,
  flags: Reading,
  changed: Named | undefined,
): Promise<PreviewedVersions> {
  const kubernetes = kubernetesPolicyOf(nameOf(args) ?? '');
  if (kubernetes !== undefined) {
    return await versionsOfKubernetes(kubernetes, connected, changed);
  }
  const target = admissionTarget(
    await targetOf(args, connected, flags.productNamespace),
    '`portcullis governance dryrun` shows what it would change.',
  );
  const declared = readPolicy(target.policy, 'the spec that is applied', flags);
  const { name } = declared;
  const old = (await versionOfFile(name, flags)) ?? (await servingVersion(target, flags));
  if (changed === undefined) {
    return { name, old, new: { label: 'the spec that is applied', policies: [declared], objects: [] } };
  }
  const base = old.policies.length === 0 ? [declared] : old.policies;
  const objects = changed.files.objects.map(({ object }) => object);
  requireParameters(base, objects, name, changed.where);
  return { name, old, new: { label: changed.where, policies: base, objects } };
}

/** @throws CliError unless one of the objects has parameters of the policy */
function requireParameters(
  policies: readonly AuditPolicy[],
  objects: readonly JsonObject[],
  policy: string,
  where: string,
): void {
  const sources = policies.flatMap(({ definition }) =>
    moduleUses(definition).flatMap(({ parameters }) => parameters?.from ?? []),
  );
  const isParameter = (object: JsonObject): boolean =>
    sources.some((from) =>
      'resource' in from
        ? object['kind'] === from.resource.kind && valueAt(object, 'metadata', 'name') === from.resource.name
        : object['kind'] === 'Namespace',
    );
  if (!objects.some(isParameter)) {
    const names = sources.map((from) =>
      'resource' in from ? `${from.resource.kind} ${from.resource.name}` : 'Namespaces',
    );
    throw new CliError(`${where}: expected the policy ${policy}, or parameters of it`, {
      hint: names.length === 0 ? 'The policy has no parameters.' : `Its parameters are in ${names.join(', ')}.`,
    });
  }
}

/** The revision that serves, or the one of `--from`. */
async function servingVersion(target: RolloutTarget, flags: Reading): Promise<PreviewedVersion> {
  const wanted = flags.from === undefined ? undefined : Number(flags.from);
  const { cluster, policy, productNamespace } = target;
  const reading = unlessGone(listRevisions(cluster, policy, productNamespace));
  const kept = await unlessForbidden(reading.then((revisions = []) => revisions));
  if (kept === undefined && listedRevisions(policy).length === 0) {
    throw new CliError(`it is not known which revision of ${target.name} serves`, {
      hint: `It needs ${REVISIONS_RIGHT} in namespace ${productNamespace}. Or name the old version: --from FILE.`,
    });
  }
  return kept === undefined ? listedVersion(target, wanted, flags) : keptVersion(target, kept, wanted, flags);
}

function keptVersion(
  target: RolloutTarget,
  revisions: readonly PolicyRevision[],
  wanted: number | undefined,
  flags: Reading,
): PreviewedVersion {
  const found = wanted === undefined ? keptServing(revisions) : revisionOf(target, revisions, wanted);
  if (found === undefined) {
    return { ...NONE, label: 'no revision serves' };
  }
  const label = `revision ${found.spec.revision}`;
  const spec = pinnedSpec(snapshotOf(found), found.status?.modules ?? []);
  return {
    label,
    policies: [readPolicy({ ...target.policy, spec } as AdmissionPolicyObject, label, flags)],
    objects: [],
  };
}

/** From the status of the policy, where reading revisions is forbidden. */
function listedVersion(target: RolloutTarget, wanted: number | undefined, flags: Reading): PreviewedVersion {
  const revisions: readonly RevisionSummary[] = listedRevisions(target.policy);
  const number = wanted ?? target.policy.status?.servingRevision;
  if (number === undefined) {
    return { ...NONE, label: 'no revision serves' };
  }
  const label = `revision ${number}`;
  const spec = requiredSpec(target, revisionOf(target, revisions, number));
  process.stderr.write(
    `note: you lack ${REVISIONS_RIGHT}: ${label} is the one in the status of the policy, with the modules that its tags name now\n`,
  );
  return {
    label,
    policies: [readPolicy({ ...target.policy, spec } as AdmissionPolicyObject, label, flags)],
    objects: [],
  };
}

function readPolicy(policy: AdmissionPolicyObject, label: string, { modulesDir, installation }: Reading): AuditPolicy {
  const read = auditPolicy(policy, {
    ...installation,
    ...(modulesDir === undefined ? {} : { modulesUrl: folderUrl(modulesDir) }),
  });
  if ('id' in read) {
    return read;
  }
  throw new CliError(`${label} of ${read.name} cannot be read: ${read.problems.join('; ')}`);
}

async function versionsOfKubernetes(
  policy: KubernetesPolicy,
  connected: Cluster,
  changed: Named | undefined,
): Promise<PreviewedVersions> {
  const name = `${policy.kind === 'ValidatingAdmissionPolicy' ? 'vap' : 'map'}/${policy.name}`;
  const manifests = await kubernetesManifests(policy, connected);
  const [found] = manifests;
  const bindings =
    changed?.files.manifests.map(({ object }) => object).filter((one) => isBindingOf(one, policy.name)) ?? [];
  if (found === undefined || bindings.length === 0) {
    throw new CliError(
      found === undefined ? `the cluster has no ${name}` : `expected a changed policy, or bindings of ${name}`,
      {
        hint: 'Name a file with -f or --binding.',
      },
    );
  }
  return {
    name,
    old: { label: 'applied', policies: await importedPolicies(manifests, name), objects: [] },
    new: { label: changed?.where ?? '', policies: await importedPolicies([found, ...bindings], name), objects: [] },
  };
}

async function oldOfKubernetes(
  policy: FilePolicy,
  connected: Cluster | undefined,
  flags: Reading,
): Promise<PreviewedVersion> {
  const fromFile = await versionOfFile(policy.name, flags);
  const [manifest = {}] = policy.manifests ?? [];
  if (fromFile !== undefined || connected === undefined) {
    return fromFile ?? NONE;
  }
  const name = textOf(valueAt(manifest, 'metadata', 'name'));
  const manifests = await kubernetesManifests({ kind: textOf(manifest['kind']), name }, connected);
  return manifests.length === 0
    ? { ...NONE, label: 'not in the cluster' }
    : { label: 'applied', policies: await importedPolicies(manifests, policy.name), objects: [] };
}
