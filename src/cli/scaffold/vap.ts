// `portcullis scaffold vap`: Kubernetes' own admission policies as ClusterAdmissionPolicies, the reverse of `export`.
import { Command } from 'commander';
import { importPolicies } from '../../engine/index.ts';
import { DEFAULT_EXEMPT_NAMESPACES } from '../../resources/index.ts';
import { CliError, usageError } from '../errors.ts';
import { type DataFormat, manifestsOption, manifestsText } from '../output.ts';
import { readManifests } from '../policy/manifests.ts';
import { Progress } from '../progress.ts';

interface VapFlags {
  readonly policy?: string;
  readonly binding?: string;
  readonly celPolicy: string;
  readonly output: DataFormat;
}

export function vapCommand(): Command {
  return new Command('vap')
    .description('print ValidatingAdmissionPolicies and MutatingAdmissionPolicies as ClusterAdmissionPolicies')
    .argument('[files...]', 'files and folders with policies and bindings; - for standard input')
    .option('-p, --policy <file>', 'file with a policy')
    .option('-b, --binding <file>', 'file with its binding')
    .option('--cel-policy <module>', 'the module of the printed policies', 'builtin:cel')
    .addOption(manifestsOption())
    .addHelpText(
      'after',
      `
Each binding becomes one policy, with the name of its policy if that has no other. What
is different then is named on standard error. Exit code: 1 when a policy cannot be
converted; nothing is printed then.

Examples:
  portcullis scaffold vap policy.yaml binding.yaml > cluster-admission-policy.yaml
  kubectl get vap,vapb -o yaml | portcullis scaffold vap -`,
    )
    .action(scaffoldVap);
}

async function scaffoldVap(files: readonly string[], flags: VapFlags): Promise<void> {
  const paths = [...files, flags.policy, flags.binding].filter((path) => path !== undefined);
  if (paths.length === 0) {
    throw usageError('no policy is named', 'Name files, or - for standard input.');
  }
  const manifests = await readManifests(paths);
  const { policies, problems, notes } = await importPolicies(manifests, { module: flags.celPolicy });
  const progress = new Progress();
  notes.forEach((note) => progress.note(note));
  if (problems.length > 0) {
    const lines = problems.map(
      ({ manifest, field, message }) => `  ${manifest}: ${field === '' ? '' : `${field}: `}${message}`,
    );
    throw new CliError(`not converted:\n${lines.join('\n')}`);
  }
  if (policies.length === 0) {
    throw new CliError(
      `${paths.join(', ')}: expected a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy, got none`,
      { hint: 'portcullis export FILE does the reverse: it prints policies of builtin:cel as policies of Kubernetes.' },
    );
  }
  progress.note(
    `${DEFAULT_EXEMPT_NAMESPACES.join(', ')} are exempt from policies of the cluster; API servers evaluate their own policies there as well`,
  );
  process.stdout.write(manifestsText(policies, flags.output));
}
