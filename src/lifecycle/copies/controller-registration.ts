// The ControllerReplica of this process, by which policy servers and other controllers find its copies.
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { Backoff, type Cluster, unlessGone } from '../../cluster/index.ts';
import { apiVersionOf, CONTROLLER_REPLICAS, type ControllerReplica } from '../../resources/index.ts';
import { type CachedObjects, pause, SYSTEM_CLOCK } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';

/** How long an ending process tries to remove its object; otherwise garbage collection or the leader does. Milliseconds. */
const REMOVAL_TIMEOUT_MS = 2_000;

export interface ControllerIdentity {
  /** `metadata.name` of the ControllerReplica, unique among running processes. */
  readonly name: string;
  /** The pod of the process, which owns the object. */
  readonly pod?: { readonly name: string; readonly uid: string; readonly nodeName?: string };
}

export interface ControllerRegistrationOptions {
  readonly cluster: Pick<Cluster, 'get' | 'create' | 'update' | 'delete'>;
  readonly namespace: string;
  readonly identity: ControllerIdentity;
  /** `host:port` */
  readonly controlAddress: string;
  /** Version of the product. */
  readonly version: string;
  /** RFC 3339. */
  readonly startedAt: string;
  /** ControllerReplicas, including its own, which others may delete. */
  readonly controllers: Pick<CachedObjects<ControllerReplica>, 'subscribe'>;
  readonly log: Logger;
}

/** Keeps the object as it should be until `signal` is aborted; then removes it. Never rejects. */
export async function registerController(options: ControllerRegistrationOptions, signal: AbortSignal): Promise<void> {
  const { cluster, namespace, identity, controllers, log } = options;
  const backoff = new Backoff();
  let wake: () => void = () => undefined;
  let isDue = true;
  const end = controllers.subscribe(({ before, after }) => {
    if ((after ?? before)?.metadata.name === identity.name) {
      isDue = true;
      wake();
    }
  });
  while (!signal.aborted) {
    isDue = false;
    try {
      await ensure(options, signal);
      backoff.reset();
      await new Promise<void>((resolve) => {
        wake = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
        if (isDue || signal.aborted) {
          resolve();
        }
      });
    } catch (error) {
      log.warn({ error: errorText(error) }, 'the address of this controller could not be written, trying again');
      await pause(SYSTEM_CLOCK, backoff.failed(SYSTEM_CLOCK.now()), signal);
    }
  }
  end();
  const limit = AbortSignal.timeout(REMOVAL_TIMEOUT_MS);
  await unlessGone(cluster.delete(CONTROLLER_REPLICAS, { namespace, name: identity.name }, { signal: limit })).catch(
    () => undefined,
  );
}

async function ensure(options: ControllerRegistrationOptions, signal: AbortSignal): Promise<void> {
  const { cluster, namespace, identity } = options;
  const wanted = wantedObject(options);
  const found = await unlessGone(cluster.get(CONTROLLER_REPLICAS, { namespace, name: identity.name }, { signal }));
  if (found === undefined) {
    await cluster.create(CONTROLLER_REPLICAS, wanted, { signal });
    return;
  }
  const { ownerReferences } = wanted.metadata;
  if (!isDeepStrictEqual([found.spec, found.metadata.ownerReferences], [wanted.spec, ownerReferences])) {
    const metadata = { ...found.metadata, ...(ownerReferences === undefined ? {} : { ownerReferences }) };
    await cluster.update(CONTROLLER_REPLICAS, { ...wanted, metadata }, { signal });
  }
}

function wantedObject({
  namespace,
  identity: { name, pod },
  controlAddress,
  version,
  startedAt,
}: ControllerRegistrationOptions): ControllerReplica {
  return {
    apiVersion: apiVersionOf(CONTROLLER_REPLICAS),
    kind: CONTROLLER_REPLICAS.kind,
    metadata: {
      namespace,
      name,
      ...(pod === undefined
        ? {}
        : { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid }] }),
    },
    spec: { ...placeOf(pod), controlAddress, version, startedAt },
  };
}

function placeOf(pod: ControllerIdentity['pod']): Pick<ControllerReplica['spec'], 'podName' | 'nodeName'> {
  const { name, nodeName } = pod ?? {};
  return { ...(name === undefined ? {} : { podName: name }), ...(nodeName === undefined ? {} : { nodeName }) };
}
