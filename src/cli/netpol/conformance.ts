// `portcullis netpol conformance`: whether a network provider that reports for itself does as the contract says.
import { Command } from 'commander';
import { addConnectionFlags, type ClusterFlags, connect } from '../cluster/cluster-flags.ts';
import { durationMs } from '../cluster/duration.ts';
import { EXIT } from '../errors.ts';
import { oneLine } from '../table.ts';
import { Conformance } from './conformance-checks.ts';

interface ConformanceFlags extends ClusterFlags {
  readonly timeout: string;
  readonly quiet: string;
}

export function conformanceCommand(): Command {
  return addConnectionFlags(
    new Command('conformance')
      .description('check that a network provider reports what it does with NetworkPolicies as the contract says')
      .argument('<provider>', 'name of its NetworkPolicyProvider')
      .option('--timeout <duration>', 'time for each report, such as 30s or 5m', '30s')
      .option('--quiet <duration>', 'time in which nothing may be written without a change', '5s'),
  )
    .addHelpText(
      'after',
      `
It creates NetworkPolicies in a new namespace, which it deletes.

Examples:
  portcullis netpol conformance example

Exit code: 0 if all checks pass; 1 if not, or after an error; 2 for wrong usage.`,
    )
    .action(conformance);
}

async function conformance(provider: string, flags: ConformanceFlags): Promise<void> {
  const timeoutMs = durationMs(flags.timeout, '--timeout');
  const quietMs = durationMs(flags.quiet, '--quiet');
  using connected = await connect(flags);
  const isPassed = await new Conformance({
    cluster: connected.cluster,
    provider,
    timeoutMs,
    quietMs,
    onResult: ({ check, isPassed: isOk, message }) =>
      process.stdout.write(`${isOk ? 'PASS' : 'FAIL'}  ${check}: ${oneLine(message)}\n`),
  }).run();
  process.exitCode = isPassed ? EXIT.ok : EXIT.failed;
}
