// `portcullis scaffold manifest`: the manifest of a policy from the metadata of its module, as `kwctl scaffold manifest`.
import { Command, Option } from 'commander';
import { readMetadata } from '../../modules/index.ts';
import { isJsonObject, type JsonObject } from '../../values/index.ts';
import { parseJsonArgument, readDocument } from '../document.ts';
import { CliError } from '../errors.ts';
import { readModule, targetReference } from '../module/module-source.ts';
import { readSources } from '../module/read-sources.ts';
import { addSignatureFlags, readSignatureFlags, type SignatureFlags } from '../module/signature-flags.ts';
import { addSourceFlags, type SourceFlags } from '../module/source-flags.ts';
import { dataText } from '../output.ts';
import { Progress } from '../progress.ts';
import { manifestOf, type ManifestType } from './module-manifest.ts';

interface ManifestFlags extends SignatureFlags, SourceFlags {
  readonly type: ManifestType;
  readonly settingsPath?: string;
  readonly settingsJson?: string;
  readonly title?: string;
  readonly allowContextAware?: true;
}

export function manifestCommand(): Command {
  const command = new Command('manifest')
    .description('print the manifest of a policy from the metadata of its module')
    .argument(
      '<target>',
      'the module: a file, or a URL (registry://, https://, http://, file://); may end in @sha256:…',
    )
    .addOption(
      new Option('-t, --type <kind>', 'kind of the policy')
        .choices(['ClusterAdmissionPolicy', 'AdmissionPolicy'])
        .default('ClusterAdmissionPolicy'),
    )
    .addOption(
      new Option('-s, --settings-path <file>', 'settings of the policy, JSON or YAML').conflicts('settingsJson'),
    )
    .option('--settings-json <json>', 'settings of the policy, as JSON')
    .option('--title <name>', 'name of the policy (default: the title in its metadata)')
    .option('--allow-context-aware', 'let the policy read the kinds of objects in its metadata');
  return addSourceFlags(addSignatureFlags(command))
    .addHelpText(
      'after',
      `
Examples:
  portcullis scaffold manifest policy.wasm | portcullis apply -f -
  portcullis scaffold manifest registry://registry.example.com/policies/owner-label:v1.0.0 \\
    --type AdmissionPolicy --settings-path settings.yml > policy.yaml`,
    )
    .action(scaffoldManifest);
}

async function scaffoldManifest(target: string, flags: ManifestFlags): Promise<void> {
  const progress = new Progress();
  const [settings, sources, verification] = await Promise.all([
    readSettings(flags),
    readSources(flags),
    readSignatureFlags(flags),
  ]);
  const options = { progress, baseDir: process.cwd(), sources, verification };
  const { location, bytes } = await readModule(targetReference(target), options);
  const metadata = readMetadata(bytes);
  if (metadata === undefined) {
    throw new CliError(`${location} has no metadata, which say what requests the policy is for`, {
      hint: 'Write them into the module with "portcullis annotate".',
    });
  }
  const { manifest, notes } = manifestOf(metadata, {
    module: location,
    type: flags.type,
    settings,
    title: flags.title,
    isContextAware: flags.allowContextAware === true,
  });
  notes.forEach((note) => progress.note(note));
  process.stdout.write(dataText(manifest, 'yaml'));
}

async function readSettings({ settingsPath, settingsJson }: ManifestFlags): Promise<JsonObject> {
  const [name, value] =
    settingsJson === undefined
      ? [settingsPath ?? '', settingsPath === undefined ? {} : (await readDocument(settingsPath)).value]
      : ['--settings-json', parseJsonArgument(settingsJson, '--settings-json')];
  if (!isJsonObject(value)) {
    throw new CliError(`${name} has no settings: expected a mapping`);
  }
  return value;
}
