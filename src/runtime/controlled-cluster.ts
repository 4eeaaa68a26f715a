import { Registry } from 'prom-client';
import type { Cluster } from '../cluster/index.ts';
import type { Logger } from '../log/index.ts';
import { EventRecorder } from './event-recorder.ts';
import { RuntimeMetrics } from './metrics.ts';
import { SharedCaches } from './shared-caches.ts';

/** The source of events. */
const COMPONENT = 'portcullis-controller';

/** A cluster as its controllers use it. A process may have several, which share nothing. */
export interface ControlledCluster {
  /** Tells its log lines and metrics from those of others; undefined in a process with one cluster. */
  readonly name?: string;
  /** With the rights of the controllers. */
  readonly cluster: Cluster;
  readonly caches: SharedCaches;
  readonly events: EventRecorder;
  /** Of this cluster only; a page of metrics adds its name as the label `cluster`. */
  readonly registry: Registry;
  readonly metrics: RuntimeMetrics;
  readonly log: Logger;
}

/** A cluster with caches, events and metrics of its own. */
export function controlledCluster({
  name,
  cluster,
  log,
}: Pick<ControlledCluster, 'name' | 'cluster' | 'log'>): ControlledCluster {
  const registry = new Registry();
  const metrics = new RuntimeMetrics(registry);
  const own = name === undefined ? log : log.child({ cluster: name });
  return {
    ...(name === undefined ? {} : { name }),
    cluster,
    caches: new SharedCaches({ cluster, log: own, metrics }),
    events: new EventRecorder({ cluster, component: COMPONENT, log: own, metrics }),
    registry,
    metrics,
    log: own,
  };
}
