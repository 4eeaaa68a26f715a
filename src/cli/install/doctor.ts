// `portcullis doctor`: finds problems of an installation. Changes nothing.
import { Command, Option } from 'commander';
import { styled } from '../../values/index.ts';
import { EXIT } from '../errors.ts';
import { dataText, outputOption, type OutputFormat } from '../output.ts';
import { oneLine } from '../table.ts';
import { connectInstallation } from './connect-installation.ts';
import { defaultValues, diagnose, type Finding, type Severity, takeSnapshot } from '../../installation/index.ts';
import { addInstallationFlags, type InstallationFlags, productVersion } from './install-flags.ts';

interface DoctorFlags extends InstallationFlags {
  readonly output: OutputFormat;
  readonly failOn: 'error' | 'warning';
}

const COLORS = { error: 'red', warning: 'yellow', info: 'cyan' } as const satisfies Record<Severity, string>;

export function doctorCommand(): Command {
  return addInstallationFlags(
    new Command('doctor')
      .description(
        'find problems of an installation: what is missing, expired, conflicting or left over, and what to do',
      )
      .addOption(outputOption())
      .addOption(
        new Option('--fail-on <severity>', 'the lowest severity with exit code 1')
          .choices(['error', 'warning'])
          .default('error'),
      ),
  )
    .addHelpText(
      'after',
      `
Examples:
  portcullis doctor
  portcullis doctor -n policies --fail-on warning
  portcullis doctor -o json | jq -r '.findings[] | select(.severity == "error").code'

It only reads. docs/install.md explains each code.`,
    )
    .action(doctor);
}

async function doctor(flags: DoctorFlags): Promise<void> {
  const { namespace, ...which } = flags;
  using connected = await connectInstallation(which);
  const snapshot = await takeSnapshot(connected.cluster, namespace, connected.namespace);
  const findings = diagnose(snapshot, { namespace, values: defaultValues(productVersion()) });
  const counts = countsOf(findings);
  process.stdout.write(
    flags.output === 'table'
      ? reportText(findings, counts)
      : dataText({ namespace, kubernetes: snapshot.version.gitVersion, ...counts, findings }, flags.output, {
          pretty: true,
        }),
  );
  const fails = counts.errors > 0 || (flags.failOn === 'warning' && counts.warnings > 0);
  process.exitCode = fails ? EXIT.failed : EXIT.ok;
}

interface Counts {
  readonly errors: number;
  readonly warnings: number;
}

function countsOf(findings: readonly Finding[]): Counts {
  const count = (severity: Severity): number => findings.filter((one) => one.severity === severity).length;
  return { errors: count('error'), warnings: count('warning') };
}

function reportText(findings: readonly Finding[], { errors, warnings }: Counts): string {
  const blocks = findings.map(
    ({ severity, code, where, message, action }) =>
      `${styled(COLORS[severity], severity)} ${code}: ${oneLine(where)}\n  ${oneLine(message)}\n  → ${oneLine(action)}\n`,
  );
  const summary = errors + warnings === 0 ? 'No problems found.' : `${errors} errors, ${warnings} warnings.`;
  return `${[...blocks, summary].join('\n')}\n`;
}
