// `portcullis test`: tests of policies in files, and policies on plain manifests; see docs/testing.md.
import { basename } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { RE2JS } from 're2js';
import { isBuiltin } from '../../modules/index.ts';
import { errorText } from '../../values/index.ts';
import { STANDARD_INPUT } from '../document.ts';
import { usageError } from '../errors.ts';
import { kubernetesVersion } from '../kubernetes-version.ts';
import { readSources } from '../module/read-sources.ts';
import { readTrustRoot } from '../module/read-verification.ts';
import { addSignatureFlags, readSignatureFlags, type SignatureFlags } from '../module/signature-flags.ts';
import { addSourceFlags, type SourceFlags } from '../module/source-flags.ts';
import { TEST_FILE } from '../policy/manifests.ts';
import { seconds } from '../policy/policy-flags.ts';
import { addRequestFlags, collected, givenRequestFlags } from '../policy/request-flags.ts';
import { TEST_FILES } from './suites/discover.ts';
import { type Format, FORMATS, type ReportFile } from './suites/report-formats.ts';
import type { ResourceTestFlags } from './resources/test-resources.ts';
import { type SuiteFlags, testSuites } from './suites/test-suites.ts';

interface TestFlags extends SignatureFlags, SourceFlags, SuiteFlags, ResourceTestFlags {
  readonly policies?: readonly string[];
}

/** Flags that are only used with `-p`, beside those of requests. */
const RESOURCE_FLAGS = ['verbose', 'requireMatch', 'kubernetesVersion', 'replayHostCapabilitiesInteractions'] as const;

export function testCommand(): Command {
  const command = new Command('test')
    .description('run tests of policies, or with -p policies on manifests')
    .argument(
      '[path...]',
      `test files, or folders with ${TEST_FILES} in them or below (default: .); with -p, manifests: files, folders, or - for standard input`,
    )
    .addOption(
      new Option(
        '--filter <pattern>',
        'only cases whose "suite › case" matches this RE2 pattern; (?i) ignores case',
      ).argParser(pattern),
    )
    .option('--watch', 'test again when a file changes; Ctrl-C stops')
    .addOption(
      new Option(
        '-p, --policies <file>',
        'test the policies of this file or folder on the manifests of paths; repeatable',
      ).argParser(collected),
    )
    .option('-v, --verbose', 'with -p: show policies that do not apply to a resource, too')
    .option('--require-match', 'with -p: exit with 1 when no policy applies to any resource');
  return addSourceFlags(addSignatureFlags(addRequestFlags(command, 'with -p: objects before the change')))
    .option(
      '--replay-host-capabilities-interactions <file>',
      'with -p: answer host capabilities from a recorded session',
    )
    .addOption(
      new Option('--kubernetes-version <version>', 'with -p: version of the API server, such as 1.34').argParser(
        kubernetesVersion,
      ),
    )
    .addOption(
      new Option('--timeout <seconds>', 'timeout of one evaluation (default: that of the policy, or 2)').argParser(
        seconds,
      ),
    )
    .addOption(
      new Option('-o, --output <format>', 'output format').choices([...FORMATS]).default('table' satisfies Format),
    )
    .option(
      '--output-file <format=file>',
      'also write the results to a file, such as junit=report.xml; repeatable',
      reportFile,
    )
    .addHelpText(
      'after',
      `
Exit code: 0 when all cases passed; 1 when one failed, or its policy gave no verdict; 2 when a test file or what it
names cannot be read, there are no tests, or the command line is wrong. With -p: 0 when no policy denies a resource; 1
when one does, or gives no verdict; 2 when files cannot be read.

Examples:
  portcullis test
  portcullis test policies/ --filter 'required-labels › .*rejected'
  portcullis test --output-file junit=report.xml
  portcullis test --watch
  portcullis test -p policy.yaml deployment.yaml
  helm template shop ./chart --namespace shop | portcullis test -p policies/ - --namespace shop
  kustomize build overlays/production | portcullis test -p policies/ - -o github
  portcullis test -p policies/ manifests/ --watch
  portcullis test -p policies/ new/ --old deployed/ --user alice --group dev`,
    )
    .action(test);
}

function pattern(text: string): RE2JS {
  try {
    return RE2JS.compile(text);
  } catch (error) {
    throw new InvalidArgumentError(`Expected an RE2 pattern: ${errorText(error)}.`);
  }
}

function reportFile(text: string, previous: readonly ReportFile[] = []): readonly ReportFile[] {
  const [, name = '', path = ''] = /^([^=]*)=(.+)$/s.exec(text) ?? [];
  const format = FORMATS.find((known) => known === name);
  if (format === undefined) {
    throw new InvalidArgumentError(`Expected FORMAT=FILE with one of ${FORMATS.join(', ')}, got ${text}.`);
  }
  return [...previous, { format, path }];
}

async function test(paths: readonly string[], flags: TestFlags): Promise<void> {
  checkFlags(paths, flags);
  const [sources, verification, trustRoot] = await Promise.all([
    readSources(flags),
    readSignatureFlags(flags),
    readTrustRoot(flags.sigstoreTrustConfig),
  ]);
  const fetching = { sources, verification, trustRoot };
  process.exitCode =
    flags.policies === undefined
      ? await testSuites(paths, flags, fetching)
      : await (await import('./resources/test-resources.ts')).testResourceFiles(flags.policies, paths, flags, fetching);
}

function checkFlags(paths: readonly string[], flags: TestFlags): void {
  if (flags.watch === true && flags.output !== 'table') {
    throw usageError(`--watch needs -o table, got ${flags.output}`);
  }
  if (flags.policies === undefined) {
    const given = [
      ...givenRequestFlags(flags),
      ...RESOURCE_FLAGS.filter((name) => flags[name] !== undefined).map((name) => `--${kebabCase(name)}`),
    ];
    if (given.length > 0) {
      throw usageError(`${given.join(', ')}: only used with -p`, 'Test files state requests themselves.');
    }
    return;
  }
  if (flags.watch === true && [...flags.policies, ...paths, flags.old].includes(STANDARD_INPUT)) {
    throw usageError('--watch needs files and folders: standard input cannot be read again');
  }
  const module = flags.policies.find((path) => isBuiltin(path) || /^\w+:\/\/|\.wasm$/.test(path));
  if (module !== undefined) {
    throw usageError(
      `${module} is a module, whose requests no rule selects: expected manifests or a policies file with -p`,
      `To evaluate one request: portcullis run ${module} -r FILE`,
    );
  }
  if (paths.length === 0) {
    throw usageError('no manifests to test the policies on', 'Name files, folders, or - for standard input.');
  }
  const suite = paths.find((path) => TEST_FILE.test(basename(path)));
  if (suite !== undefined) {
    throw usageError(
      `${suite} is a test file, which names its policy itself: expected manifests with -p`,
      `To run the test file: portcullis test ${suite}`,
    );
  }
}

function kebabCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
