import { Registry } from 'prom-client';
import type { LocalCertificates } from '../../control/certificates/index.ts';
import { PolicyServer, type PolicyServerOptions } from '../../server/index.ts';
import { onFreePorts } from './free-ports.ts';
import type { StartFlags } from './start-flags.ts';

export interface StartedServer {
  readonly server: PolicyServer;
  /** The registry of its metrics page. */
  readonly registry: Registry;
  readonly admission: string;
  readonly operations: string;
}

/** Starts a policy server on the first free ports. */
export function startServer(
  flags: StartFlags,
  certificates: LocalCertificates,
  options: Pick<
    PolicyServerOptions,
    | 'policiesFile'
    | 'policyManifests'
    | 'replica'
    | 'dataDir'
    | 'cluster'
    | 'sources'
    | 'verification'
    | 'trustRoot'
    | 'log'
  >,
): Promise<StartedServer> {
  return onFreePorts([flags.port, flags.operationsPort], async ([port = 0, operationsPort = 0]) => {
    // A new registry for each attempt, because a metric cannot be registered twice.
    const registry = new Registry();
    const server = new PolicyServer({ ...options, port, operationsPort, tls: certificates, registry });
    const { admission, operations } = await server.start();
    return { server, registry, admission: admission.replace('127.0.0.1', 'localhost'), operations };
  });
}
