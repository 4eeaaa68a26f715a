import type { KubernetesObject } from '../resources/index.ts';

/** An object as commands take it: `clusteradmissionpolicy/one`, `admissionpolicy/one -n shop`. */
export function commandNameOf({ kind, metadata: { name = '', namespace } }: KubernetesObject): string {
  return `${kind.toLowerCase()}/${name}${namespace === undefined ? '' : ` -n ${namespace}`}`;
}
