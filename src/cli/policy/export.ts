// `portcullis export`: policies of builtin:cel as manifests for the admission policies of API servers.
import { styleText } from 'node:util';
import { Command, Option } from 'commander';
import { type ExportedPolicy, exportPolicy, parsePolicies, type PolicyDefinition } from '../../engine/index.ts';
import { readText } from '../document.ts';
import { CliError, EXIT } from '../errors.ts';
import { kubernetesVersion } from '../kubernetes-version.ts';
import { type DataFormat, dataText } from '../output.ts';
import { findPolicy } from './policies-file.ts';
import { Progress } from '../progress.ts';
import { parseJson } from '../../values/index.ts';

interface ExportFlags {
  readonly policy?: string;
  readonly kubernetesVersion?: number;
  readonly output: DataFormat;
}

const CEL = 'builtin:cel';

export function exportCommand(): Command {
  return new Command('export')
    .description('print policies of builtin:cel as ValidatingAdmissionPolicies or MutatingAdmissionPolicies')
    .argument('[policies]', 'the policies file', 'policies.yml')
    .option('--policy <id>', `the policy to export (default: all of ${CEL})`)
    .addOption(
      new Option('--kubernetes-version <version>', 'version of the API server, such as 1.34').argParser(
        kubernetesVersion,
      ),
    )
    .addOption(
      new Option('-o, --output <format>', 'output format; json prints a List')
        .choices(['yaml', 'json'])
        .default('yaml'),
    )
    .addHelpText(
      'after',
      `
Each policy becomes two manifests: the policy, and a binding of the same name. What has no counterpart is named on standard
error. Exit code: 0 when an API server would take all of them; 1 when not, or a policy is not of ${CEL}.

Example:
  portcullis export policies.yml --policy replica-limit | kubectl apply -f -`,
    )
    .action(exportPolicies);
}

async function exportPolicies(file: string, flags: ExportFlags): Promise<void> {
  const progress = new Progress();
  const policies = policiesOf(await readText(file), file, flags.policy);
  const manifests: object[] = [];
  for (const policy of policies) {
    const exported = exportOne(policy, flags.kubernetesVersion);
    for (const { field, message } of exported.problems) {
      progress.line(
        `${styleText('yellow', 'note:', { stream: process.stderr })} ${policy.id}: ${field === '' ? '' : `${field}: `}${message}`,
      );
    }
    if (exported.manifests.length === 0) {
      throw new CliError(`${policy.id} cannot be exported`, {
        hint: 'Correct its settings in the policies file first.',
      });
    }
    // These problems name a manifest: an API server would refuse it with the same message.
    if (exported.problems.some((problem) => 'manifest' in problem)) {
      process.exitCode = EXIT.failed;
    }
    manifests.push(...exported.manifests);
  }
  process.stdout.write(
    flags.output === 'json'
      ? dataText({ apiVersion: 'v1', kind: 'List', items: manifests }, 'json', { pretty: true })
      : manifests.map((manifest) => dataText(manifest, 'yaml')).join('---\n'),
  );
}

/** The policy with this id, or all policies of builtin:cel. */
function policiesOf(text: string, file: string, id: string | undefined): readonly PolicyDefinition[] {
  if (id !== undefined) {
    return [findPolicy(text, file, id)];
  }
  const found = parsePolicies(text, file).policies.filter(
    (policy) => policy.kind === 'policy' && policy.module === CEL,
  );
  if (found.length === 0) {
    throw new CliError(`${file} has no policy of ${CEL}, and no other can be exported`);
  }
  return found;
}

function exportOne(policy: PolicyDefinition, version: number | undefined): ExportedPolicy {
  if (policy.kind === 'group' || policy.module !== CEL) {
    const kind = policy.kind === 'group' ? 'a group' : `of ${policy.module}`;
    throw new CliError(`${policy.id} is ${kind}: expected a policy of ${CEL}`, {
      hint: 'API servers run nothing but CEL themselves; other policies are served by a webhook.',
    });
  }
  return exportPolicy(parseJson(policy.settingsJson), {
    name: policy.id,
    monitors: policy.mode === 'monitor',
    ...(policy.message === undefined ? {} : { message: policy.message }),
    ...(version === undefined ? {} : { kubernetesVersion: version }),
  });
}
