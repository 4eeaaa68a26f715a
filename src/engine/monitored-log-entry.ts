import type { PolicyLogEntry } from './capabilities/host-port.ts';
import type { MonitoredVerdict } from './monitored-verdict.ts';

/** The log line of a verdict in monitor mode, with the text that Kubewarden's policy server has. */
export function monitoredLogEntry({ policy, isDryRun, allowed, ...request }: MonitoredVerdict): PolicyLogEntry {
  const fields = { allowed, mutated: allowed, ...request, ...(isDryRun ? { dryRun: true } : {}) };
  return { policy, level: 'info', message: 'policy evaluation (monitor mode)', fields };
}
