import { type ApiResource, type Cluster, Reflector } from '../../cluster/index.ts';
import type { ResourceType } from '../../resources/index.ts';

/** Calls back after each change of objects of a kind, which are not kept, until the signal is aborted. What exists at first is no change. */
export async function followKind(
  cluster: Pick<Cluster, 'list' | 'watch'>,
  type: ResourceType | ApiResource,
  changed: () => void,
  signal: AbortSignal,
): Promise<void> {
  let isListed = false;
  const end = (): void => {
    if (isListed) {
      // Changes were missed.
      changed();
    }
    isListed = true;
  };
  const handler = { begin: () => undefined, page: () => Promise.resolve(), end, apply: changed };
  await new Reflector({ cluster, type, handler }).start(signal);
}
