// `portcullis scaffold artifacthub`: a policy's package for Artifact Hub, with the flags of `kwctl scaffold artifacthub`.
import { Command } from 'commander';
import { readText } from '../document.ts';
import { CliError } from '../errors.ts';
import { readMetadataFile } from '../module/read-metadata-file.ts';
import { Progress } from '../progress.ts';
import { replaceFile } from '../replace-file.ts';
import { artifactHubPackage } from './artifact-hub-package.ts';

interface ArtifactHubFlags {
  readonly metadataPath: string;
  readonly version?: string;
  readonly ghReleaseTag?: string;
  readonly questionsPath?: string;
  readonly output?: string;
}

export function artifactHubCommand(): Command {
  return new Command('artifacthub')
    .description('print artifacthub-pkg.yml, the package of a policy for Artifact Hub, from its metadata')
    .option('-m, --metadata-path <file>', 'the metadata, YAML or JSON', 'metadata.yml')
    .option('-v, --version <version>', 'version of the policy, such as 1.2.3 (default: that of the metadata)')
    .option('--gh-release-tag <tag>', 'tag of the release on GitHub that has policy.wasm (default: v and the version)')
    .option('-q, --questions-path <file>', 'questions-ui.yml, the form for settings in Rancher')
    .option('-o, --output <file>', 'write the package to this file')
    .addHelpText(
      'after',
      `
Example:
  portcullis scaffold artifacthub --version 1.2.3 -o artifacthub-pkg.yml`,
    )
    .action(scaffoldArtifactHub);
}

async function scaffoldArtifactHub(flags: ArtifactHubFlags): Promise<void> {
  const { metadataPath, version, ghReleaseTag, questionsPath, output } = flags;
  const progress = new Progress();
  const metadata = await readMetadataFile(metadataPath, progress);
  const questions = questionsPath === undefined ? undefined : await readText(questionsPath);
  if (questions?.trim() === '') {
    throw new CliError(`${questionsPath ?? ''} is empty: expected questions`);
  }
  const { text, notes } = artifactHubPackage(metadata, {
    ...(version === undefined ? {} : { version }),
    ...(ghReleaseTag === undefined ? {} : { releaseTag: ghReleaseTag }),
    ...(questions === undefined ? {} : { questions }),
    createdAt: new Date(),
  });
  notes.forEach((note) => progress.note(note));
  if (output === undefined) {
    process.stdout.write(text);
  } else {
    await replaceFile(output, Buffer.from(text));
  }
}
