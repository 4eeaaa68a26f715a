import type { Chapter, Step } from '../steps/step.ts';
import type { Person } from './walk-lab.ts';

/** A request that the admin sends, as a dry run. */
export interface Probe {
  /** The path of the collection, as in `/api/v1/namespaces/shop/configmaps`. */
  readonly path: string;
  readonly object: object;
  /** The answer: `201`, or the status code with the message. */
  readonly gets: RegExp;
}

/**
 * What somebody does or sees. Steps of those who only read are repeated until they are as expected, because what the admin has asked for
 * takes a moment; those of the admin are not.
 */
export interface WalkStep extends Step {
  readonly by: Person;
  /** What requests get at the same moment. */
  readonly probes?: readonly Probe[];
}

/** A source of the faults that the product promises to end, in the steps of its user stories. */
export type WalkChapter = Chapter<WalkStep>;

/** The creation of an object in the namespace `shop`. */
export function creation(resource: 'configmaps' | 'secrets' | 'services', gets: RegExp, namespace = 'shop'): Probe {
  const kind = { configmaps: 'ConfigMap', secrets: 'Secret', services: 'Service' }[resource];
  const spec = resource === 'services' ? { spec: { ports: [{ port: 80 }] } } : {};
  return {
    path: `/api/v1/namespaces/${namespace}/${resource}`,
    object: { apiVersion: 'v1', kind, metadata: { name: 'probe' }, ...spec },
    gets,
  };
}
