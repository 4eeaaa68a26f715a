// `portcullis rollout preview`: what a changed policy would do to existing objects.
import { Argument, Command, Option } from 'commander';
import { addClusterFlags } from '../cluster/cluster-flags.ts';
import { addSignatureFlags } from '../module/signature-flags.ts';
import { addSourceFlags } from '../module/source-flags.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import { PREVIEW_FAIL_ON } from './preview/preview-report.ts';
import { PREVIEW_OUTPUTS } from './preview/preview-text.ts';
import type { PreviewFlags } from './run-preview.ts';

export function previewCommand(): Command {
  const command = new Command('preview')
    .description('say what a changed policy would do to existing objects, compared with the revision that serves')
    .addArgument(new Argument('[policy...]', 'the policy: NAME, TYPE/NAME, or TYPE NAME (default: that of -f)'))
    .option(
      '-f, --filename <file>',
      'the changed policy, or changed parameters of it; - for standard input (default: the spec that is applied)',
    )
    .option('--from <revision>', 'compare with this revision, or the policy of a file (default: the one that serves)')
    .option('--binding <file...>', 'changed bindings of a ValidatingAdmissionPolicy or MutatingAdmissionPolicy')
    .option('--objects <file...>', 'judge the objects of files, folders, or -, not of a cluster')
    .option('--requests <file...>', 'also judge recorded requests: AdmissionReviews, with their operations and users')
    .option('--product-namespace <name>', 'namespace of PolicyRevisions', PRODUCT_NAMESPACE)
    .option(
      '--modules-dir <folder>',
      'folder for file://./ references of the policy in the cluster, as on its policy servers',
    )
    .option('--include-secrets', 'read Secrets, if the policy is for them')
    .addOption(
      new Option('--fail-on <what>', 'exit with 1 for these; guarded: rejected objects that the cluster needs')
        .choices(PREVIEW_FAIL_ON)
        .default('newly-rejected'),
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(PREVIEW_OUTPUTS).default('table'));
  return addSourceFlags(addSignatureFlags(addClusterFlags(command)))
    .addHelpText(
      'after',
      `
Nothing is changed. -n also restricts the objects to that namespace.

Exit code: 0 if nothing is newly rejected; 1 if something is (see --fail-on), or after an error; 2 for wrong usage; 3 if
something could not be read or judged, whatever else was found.

Examples:
  portcullis rollout preview -f stricter.yaml
  portcullis rollout preview cap/pinned-images -f - --from 2 < stricter.yaml
  portcullis rollout preview cap/pinned-images
  portcullis rollout preview ap/quota -n shop -f limits-configmap.yaml
  portcullis rollout preview -f stricter.yaml --from now.yaml --objects manifests/`,
    )
    .action(async (args: readonly string[], flags: PreviewFlags) => {
      // What evaluates policies is not loaded by the other commands.
      const { runPreview } = await import('./run-preview.ts');
      await runPreview(args, flags);
    });
}
