// The manifest of a policy, from the metadata of its module.
import { dnsSubdomainProblems } from '../../names/index.ts';
import type { PolicyMetadata } from '../../modules/index.ts';
import type { JsonObject } from '../../values/index.ts';
import { usageError } from '../errors.ts';

export type ManifestType = 'ClusterAdmissionPolicy' | 'AdmissionPolicy';

export interface ManifestOptions {
  /** Its reference. */
  readonly module: string;
  readonly type: ManifestType;
  readonly settings: JsonObject;
  /** The name of the policy. Default: the title in the metadata. */
  readonly title: string | undefined;
  /** Whether it may read what its metadata name. */
  readonly isContextAware: boolean;
}

const ANNOTATION = 'io.kubewarden.policy.';
/** Annotations of modules that are those of policies, too. */
const KEPT_ANNOTATIONS = ['category', 'severity'].map((name) => `${ANNOTATION}${name}`);

/**
 * The manifest, with the fields of Kubewarden's in its order, and what its author should know.
 * @throws CliError when the module is not for requests of a cluster, or has no usable title
 */
export function manifestOf(
  metadata: PolicyMetadata,
  options: ManifestOptions,
): { readonly manifest: JsonObject; readonly notes: readonly string[] } {
  const { rules, mutating, backgroundAudit, policyType } = metadata;
  if (policyType === 'raw' || rules.length === 0) {
    throw usageError(
      policyType === 'raw'
        ? `${options.module} is for raw requests`
        : `the metadata of ${options.module} have no rules`,
      'A policy of a cluster is for admission requests, which its rules name.',
    );
  }
  const { granted, notes } = contextAware(metadata, options);
  const annotations = Object.fromEntries(
    KEPT_ANNOTATIONS.flatMap((key) => {
      const value = metadata.annotations[key];
      return value === undefined ? [] : [[key, value] as const];
    }),
  );
  const manifest: JsonObject = {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: options.type,
    metadata: {
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      name: nameOf(metadata, options.title),
    },
    spec: {
      module: options.module,
      settings: options.settings,
      rules: rules.map(({ apiGroups, apiVersions, resources, operations }) => ({
        apiGroups: [...apiGroups],
        apiVersions: [...apiVersions],
        resources: [...resources],
        operations: [...operations],
      })),
      mutating,
      ...(backgroundAudit ? {} : { backgroundAudit }),
      ...(granted.length === 0 ? {} : { contextAwareResources: granted.map((kind) => ({ ...kind })) }),
    },
  };
  return { manifest, notes };
}

function nameOf({ annotations }: PolicyMetadata, title = annotations[`${ANNOTATION}title`]): string {
  if (title === undefined || title === '') {
    throw usageError('the metadata of the module have no title', 'Name the policy with --title NAME.');
  }
  const [problem] = dnsSubdomainProblems(title);
  if (problem !== undefined) {
    throw usageError(
      `${JSON.stringify(title)} cannot be the name of a policy: ${problem}`,
      'Name the policy with --title NAME.',
    );
  }
  return title;
}

/** The kinds that the policy is granted to read. */
function contextAware(
  { contextAwareResources: wanted }: PolicyMetadata,
  { type, isContextAware }: ManifestOptions,
): { readonly granted: PolicyMetadata['contextAwareResources']; readonly notes: readonly string[] } {
  const kinds = wanted.map(({ apiVersion, kind }) => `${apiVersion}/${kind}`).join(', ');
  if (kinds === '') {
    return { granted: [], notes: [] };
  }
  const reads = `the policy reads ${kinds} from the cluster`;
  if (type === 'AdmissionPolicy') {
    return { granted: [], notes: [`${reads}, which policies of a namespace may not`] };
  }
  return isContextAware
    ? { granted: wanted, notes: [`${reads}, which contextAwareResources grants: check that it should`] }
    : { granted: [], notes: [`${reads}, and is not granted it: check that it should, then use --allow-context-aware`] };
}
