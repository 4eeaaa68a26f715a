// `portcullis export`: policies of builtin:cel as manifests for the admission policies of API servers.
import { access } from 'node:fs/promises';
import { Command, Option } from 'commander';
import {
  type ExportedPolicy,
  type ExportedRequests,
  exportPolicy,
  type JsonObject,
  type PolicyDefinition,
} from '../../engine/index.ts';
import { type AdmissionPolicyObject, DEFAULT_EXEMPT_NAMESPACES, policyMatch } from '../../resources/index.ts';
import { CliError, usageError } from '../errors.ts';
import { kubernetesVersion } from '../kubernetes-version.ts';
import { type DataFormat, manifestsOption, manifestsText } from '../output.ts';
import type { FilePolicy } from './file-policy.ts';
import { choosePolicy, NO_POLICY, type PolicyFiles, readPolicies } from './policy-files.ts';
import { requireApplicable } from './policy-findings.ts';
import { printWarnings } from './print-warnings.ts';
import { filePolicyWarnings } from './type-warnings.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import { Progress } from '../progress.ts';
import { parseJson, styled, textOf, valueAt } from '../../values/index.ts';

interface ExportFlags {
  readonly policy?: string;
  readonly kubernetesVersion?: number;
  readonly output: DataFormat;
}

const CEL = 'builtin:cel';
/** As for `serve`. */
const DEFAULT_FILE = 'policies.yml';

export function exportCommand(): Command {
  return new Command('export')
    .description('print policies of builtin:cel as ValidatingAdmissionPolicies or MutatingAdmissionPolicies')
    .argument(
      '[files...]',
      `manifests with policies: files, folders, - for standard input; or a policies file (default: ${DEFAULT_FILE})`,
    )
    .option('--policy <name>', `the policy to export (default: all of ${CEL})`)
    .addOption(
      new Option('--kubernetes-version <version>', 'version of the API server, such as 1.34').argParser(
        kubernetesVersion,
      ),
    )
    .addOption(manifestsOption())
    .addHelpText(
      'after',
      `
Each policy becomes two manifests: the policy, and a binding of the same name. What has no counterpart is named on standard
error. Exit code: 0 when an API server would take all of them; 1 when not, or a policy is not of ${CEL}.

Examples:
  portcullis export policy.yaml | kubectl apply -f -
  portcullis export policies/ --policy cap/replica-limit`,
    )
    .action(exportPolicies);
}

async function exportPolicies(paths: readonly string[], flags: ExportFlags): Promise<void> {
  const progress = new Progress();
  const files = paths.length === 0 ? [await defaultFile()] : paths;
  const { policies, objects } = await policiesOf(files, flags.policy, progress);
  const manifests: object[] = [];
  policies.forEach(requireApplicable);
  for (const policy of policies) {
    printWarnings(filePolicyWarnings(policy, objects), progress);
    const exported = await exportOne(policy, flags.kubernetesVersion);
    for (const { field, message } of [...exported.problems, ...differences(policy)]) {
      note(progress, `${policy.name}: ${field === '' ? '' : `${field}: `}${message}`);
    }
    if (exported.manifests.length === 0) {
      throw new CliError(`${policy.name} cannot be exported`, {
        hint: `Correct its settings in ${policy.file} first.`,
      });
    }
    // These problems name a manifest: an API server would refuse it with the same message.
    if (exported.problems.some((problem) => 'manifest' in problem)) {
      throw new CliError(`${policy.name} cannot be exported: an API server would refuse it`);
    }
    manifests.push(...exported.manifests);
  }
  process.stdout.write(manifestsText(manifests, flags.output));
}

/** @throws CliError when it is not there */
async function defaultFile(): Promise<string> {
  try {
    await access(DEFAULT_FILE);
    return DEFAULT_FILE;
  } catch {
    throw usageError(
      `no file is named, and there is no ${DEFAULT_FILE} here`,
      'Name a file or folder with policies, or - for standard input.',
    );
  }
}

function note(progress: Progress, text: string): void {
  progress.line(`${styled('yellow', 'note:', { stream: process.stderr })} ${text}`);
}

/** The policy with this name, or all policies of builtin:cel; with a note of the others. */
async function policiesOf(
  paths: readonly string[],
  name: string | undefined,
  progress: Progress,
): Promise<Pick<PolicyFiles, 'policies' | 'objects'>> {
  const where = paths.map((path) => (path === '-' ? 'standard input' : path)).join(', ');
  const { policies, objects } = await readPolicies(paths);
  if (name !== undefined) {
    return { policies: [choosePolicy(policies, name, where)], objects };
  }
  const found = policies.filter(({ definition }) => isOfCel(definition));
  const others = policies.filter(({ definition }) => !isOfCel(definition));
  if (others.length > 0) {
    const names = others.map((policy) => `${policy.name} (${otherThanCel(policy)})`);
    note(progress, `left out, because only policies of ${CEL} can be exported: ${names.join(', ')}`);
  }
  if (found.length === 0) {
    const hint = policies.length === 0 ? { hint: NO_POLICY } : {};
    throw new CliError(`${where} has no policy of ${CEL}, and no other can be exported`, hint);
  }
  return { policies: found, objects };
}

function isOfCel(definition: PolicyDefinition): definition is PolicyDefinition & { readonly kind: 'policy' } {
  return definition.kind === 'policy' && definition.module === CEL;
}

/** What a policy is that is not of builtin:cel. */
function otherThanCel({ kind, definition, manifest }: FilePolicy): string {
  if (definition.kind === 'group') {
    return 'a group';
  }
  return `of ${kind !== undefined && manifest === undefined ? kind : definition.module}`;
}

async function exportOne(policy: FilePolicy, version: number | undefined): Promise<ExportedPolicy> {
  const { name, definition, manifest } = policy;
  if (!isOfCel(definition)) {
    throw new CliError(`${name} is ${otherThanCel(policy)}: expected a policy of ${CEL}`, {
      hint: 'API servers run nothing but CEL themselves; other policies are served by a webhook.',
    });
  }
  return exportPolicy(parseJson(definition.settingsJson), {
    name: manifest === undefined ? definition.id : nameOf(manifest),
    monitors: definition.mode === 'monitor',
    ...(definition.message === undefined ? {} : { message: definition.message }),
    ...(manifest === undefined ? {} : { requests: requestsOf(manifest) }),
    checksPodTemplates: definition.podTemplates !== undefined,
    ...(version === undefined ? {} : { kubernetesVersion: version }),
  });
}

/** The name in a cluster-scoped kind. A namespace has no dots, so that names stay unique. */
function nameOf(manifest: JsonObject): string {
  const name = textOf(valueAt(manifest, 'metadata', 'name'));
  const namespace = textOf(valueAt(manifest, 'metadata', 'namespace'));
  return namespace === '' ? name : `${namespace}.${name}`;
}

function requestsOf(manifest: JsonObject): ExportedRequests {
  // Validated by the schema of its kind.
  const { spec, ...policy } = manifest as unknown as AdmissionPolicyObject;
  const { rules, matchPolicy, matchConditions, failurePolicy, namespace } = policyMatch(
    { ...policy, spec },
    { productNamespace: PRODUCT_NAMESPACE, ownWebhook: false },
  );
  return {
    rules,
    matchPolicy,
    matchConditions,
    failurePolicy,
    ...(namespace === undefined ? {} : { namespace }),
    // Without the namespace of a product that need not be there.
    ...('namespaceSelector' in spec ? { namespaceSelector: spec.namespaceSelector } : {}),
    ...(spec.objectSelector === undefined ? {} : { objectSelector: spec.objectSelector }),
  };
}

/** What the exported policy does otherwise. */
function differences({
  manifest,
  definition,
}: FilePolicy): readonly { readonly field: string; readonly message: string }[] {
  if (manifest === undefined) {
    return [];
  }
  const isOfCluster = valueAt(manifest, 'metadata', 'namespace') === undefined;
  return [
    ...(isOfCluster
      ? [
          {
            field: 'namespaceSelector',
            message: `API servers evaluate the exported policy in ${DEFAULT_EXEMPT_NAMESPACES.join(', ')} as well, which are exempt from policies of the cluster`,
          },
        ]
      : []),
    ...(definition.kind === 'policy' && definition.parameters !== undefined
      ? [{ field: 'parameters', message: 'the exported policy has the settings only: use paramKind and paramRef' }]
      : []),
  ];
}
