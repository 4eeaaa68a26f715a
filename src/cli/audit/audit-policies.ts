// The policies of an audit: of a cluster, or of files.
import {
  type AuditedInstallation,
  auditPolicy,
  type AuditPolicy,
  type Coverage,
  NO_COUNTS,
  exceptionsOfCluster,
  policiesOfCluster,
} from '../../audit/index.ts';
import type { Cluster } from '../../cluster/index.ts';
import type { JsonObject, PolicyDefinition } from '../../engine/index.ts';
import { type AdmissionPolicyObject, DEFAULT_EXEMPT_NAMESPACES, type ExceptionTerms } from '../../resources/index.ts';
import { folderUrl } from '../daemon-flags.ts';
import { CliError } from '../errors.ts';
import { exceptionsAmong } from '../policy/exceptions-among.ts';
import type { FilePolicy } from '../policy/file-policy.ts';
import { absoluteModule } from '../policy/policy-code.ts';
import { readPolicies } from '../policy/policy-files.ts';
import { isPolicyNamed, unknownPolicy } from '../policy/policy-names.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';

/** Policies, and what is not known of them. */
export interface InputPolicies {
  readonly policies: readonly AuditPolicy[];
  readonly coverage: readonly Coverage[];
  /** Objects beside the policies in files, such as parameters. */
  readonly objects: readonly JsonObject[];
  readonly exceptions: readonly ExceptionTerms[];
}

/** An installation with the defaults. */
export const INSTALLATION: AuditedInstallation = {
  productNamespace: PRODUCT_NAMESPACE,
  exemptNamespaces: DEFAULT_EXEMPT_NAMESPACES,
};

const OTHER_KIND = 'the API server evaluates this policy itself: only policies of Portcullis are audited';

/** The policies of files and folders. @throws CliError when one is invalid, or there is none */
export async function policiesOfFiles(paths: readonly string[]): Promise<InputPolicies> {
  const { policies, objects } = await readPolicies(paths);
  if (policies.length === 0) {
    throw new CliError(`${paths.join(', ')}: no policies`, {
      hint: 'Expected manifests of policies, or a policies file.',
    });
  }
  return {
    policies: await Promise.all(
      policies.filter(({ manifests }) => manifests === undefined).map((one) => policyOfFile(one)),
    ),
    coverage: policies
      .filter(({ manifests }) => manifests !== undefined)
      .map(({ name }) => ({
        policy: name,
        state: 'NotAuditable',
        reason: 'OtherKind',
        message: OTHER_KIND,
        counts: NO_COUNTS,
      })),
    objects: objects.map(({ object }) => object),
    exceptions: exceptionsAmong(objects.map(({ object }) => object)),
  };
}

/** The policy of a file as it would be applied. */
export async function policyOfFile(
  { name, definition, folder, manifest }: FilePolicy,
  installation = INSTALLATION,
): Promise<AuditPolicy> {
  const whole = await withAbsoluteModules(definition, folder);
  const read =
    manifest === undefined ? undefined : auditPolicy(manifest as unknown as AdmissionPolicyObject, installation);
  return read !== undefined && 'id' in read
    ? { ...read, definition: whole, isForTenant: false }
    : { id: definition.id, name, definition: whole, match: undefined, backgroundAudit: true };
}

/** Modules of files are relative to the file that names them. */
async function withAbsoluteModules(definition: PolicyDefinition, folder: string): Promise<PolicyDefinition> {
  if (definition.kind === 'policy') {
    return { ...definition, module: await absoluteModule(definition.module, folder) };
  }
  const members = definition.members.map(async (member) => ({
    ...member,
    module: await absoluteModule(member.module, folder),
  }));
  return { ...definition, members: await Promise.all(members) };
}

/**
 * The policies of a cluster.
 * @param modulesDir folder that `file://./…` is relative to, as on policy servers
 * @throws CliError when it has no such kinds
 */
export async function policiesIn(
  cluster: Cluster,
  { namespace, modulesDir }: { readonly namespace?: string | undefined; readonly modulesDir?: string | undefined },
): Promise<InputPolicies> {
  const installation = modulesDir === undefined ? INSTALLATION : { ...INSTALLATION, modulesUrl: folderUrl(modulesDir) };
  const { policies, coverage } = await policiesOfCluster(
    cluster,
    installation,
    namespace === undefined ? {} : { namespace },
  );
  if (policies.length === 0 && coverage.length > 0 && coverage.every(({ state }) => state === 'NotServed')) {
    throw new CliError('the cluster has no kinds of policies', {
      hint: 'Install them with portcullis install, or give policies of files with -p.',
    });
  }
  const found = await exceptionsOfCluster(cluster, policies, namespace === undefined ? {} : { namespace });
  return { policies, coverage: [...coverage, ...found.coverage], objects: [], exceptions: found.exceptions };
}

/** The named policies; all without names. @throws CliError that names the nearest one, or all, when there is no such policy */
export function chosenPolicies(input: InputPolicies, names: readonly string[] | undefined): InputPolicies {
  if (names === undefined) {
    return input;
  }
  const known = [...input.policies.map(({ name }) => name), ...input.coverage.map(({ policy }) => policy)];
  const unknown = names.find((name) => !known.some((policy) => isPolicyNamed(policy, name)));
  if (unknown !== undefined) {
    throw unknownPolicy(unknown, known);
  }
  const isChosen = (policy: string): boolean => names.some((name) => isPolicyNamed(policy, name));
  return {
    ...input,
    policies: input.policies.filter(({ name }) => isChosen(name)),
    // Of kinds that could not be read, one may have such a policy.
    coverage: input.coverage.filter(({ policy }) => policy === '*' || isChosen(policy)),
  };
}
