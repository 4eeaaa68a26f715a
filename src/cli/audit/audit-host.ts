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
import { ParameterObjects } from '../policy/parameter-objects.ts';

export type HostFlags = ClusterFlags & SourceFlags & SignatureFlags & { readonly modulesDir?: string };

/** What policies look up: a cluster, or given objects. */
export type Lookups = { readonly cluster: Cluster } | { readonly objects: readonly JsonObject[] };

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
  const objects = 'objects' in lookups ? new ParameterObjects(lookups.objects) : undefined;
  const host: EvaluationHost = new EvaluationHost({
    cacheDir: moduleCacheFolder(),
    policyMemoryBytes: 'unlimited',
    ...(flags.modulesDir === undefined ? {} : { tenantFolder: resolve(flags.modulesDir) }),
    sources,
    verification,
    trustRoot,
    ...('cluster' in lookups
      ? { cluster: clusterSource(flags), lookups: { cluster: lookups.cluster, log: pino({ level: 'silent' }) } }
      : {}),
    ...(objects === undefined
      ? {}
      : {
          find: async (object) => objects.publish(object, (change) => host.publishWatched(change)),
        }),
    log: ({ level, message, fields }) => {
      if (level === 'error' && fields['policy'] === undefined) {
        onProblem(`${message}: ${JSON.stringify(fields)}`);
      }
    },
  });
  return host;
}
