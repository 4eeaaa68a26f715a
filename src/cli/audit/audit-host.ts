// What evaluates the policies of an audit.
import { resolve } from 'node:path';
import { pino } from 'pino';
import type { Cluster } from '../../cluster/index.ts';
import type { JsonObject } from '../../engine/index.ts';
import { EvaluationHost } from '../../evaluation/index.ts';
import { clusterSource, type ClusterFlags } from '../cluster/cluster-flags.ts';
import { moduleCacheFolder } from '../module/module-cache.ts';
import { readSources } from '../module/read-sources.ts';
import { readTrustRoot } from '../module/read-verification.ts';
import { readSignatureFlags, type SignatureFlags } from '../module/signature-flags.ts';
import type { SourceFlags } from '../module/source-flags.ts';
import { ReplacedObjects } from './replaced-objects.ts';

export type HostFlags = ClusterFlags & SourceFlags & SignatureFlags & { readonly modulesDir?: string };

/** What policies look up: a cluster, given objects, or these in the place of those of the cluster. */
export interface Lookups {
  readonly cluster?: Cluster | undefined;
  readonly objects?: readonly JsonObject[];
}

/** @param onProblem told what goes wrong outside of a policy */
export async function auditHost(
  flags: HostFlags,
  lookups: Lookups,
  onProblem: (text: string) => void,
): Promise<EvaluationHost> {
  const [sources, verification, trustRoot] = await Promise.all([
    readSources(flags),
    readSignatureFlags(flags),
    readTrustRoot(flags.sigstoreTrustConfig),
  ]);
  const { cluster, objects } = lookups;
  const found = objects === undefined ? undefined : new ReplacedObjects(objects, cluster);
  const host: EvaluationHost = new EvaluationHost({
    cacheDir: moduleCacheFolder(),
    policyMemoryBytes: 'unlimited',
    ...(flags.modulesDir === undefined ? {} : { tenantFolder: resolve(flags.modulesDir) }),
    sources,
    verification,
    trustRoot,
    ...(cluster === undefined ? {} : { cluster: clusterSource(flags) }),
    ...(cluster === undefined || found !== undefined ? {} : { lookups: { cluster, log: pino({ level: 'silent' }) } }),
    ...(found === undefined
      ? {}
      : { find: (object) => found.publish(object, (change) => host.publishWatched(change)) }),
    log: ({ level, message, fields }) => {
      if (level === 'error' && fields['policy'] === undefined) {
        onProblem(`${message}: ${JSON.stringify(fields)}`);
      }
    },
  });
  return host;
}
