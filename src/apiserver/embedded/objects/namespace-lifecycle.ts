import { quote } from '../../../go/index.ts';
import { ApiError } from '../../../cluster/index.ts';
import { groupResourceOf } from '../../../resources/index.ts';
import type { ResourceType } from '../../../resources/index.ts';
import type { ClusterContext } from './cluster-context.ts';

/** Namespaces that cannot be deleted. */
export const PROTECTED_NAMESPACES: readonly string[] = ['default', 'kube-system', 'kube-public'];

/**
 * Rejects writes in a missing namespace, and creations in a terminating one (admission plugin NamespaceLifecycle).
 *
 * @throws ApiError 404, or 403 with the cause `NamespaceTerminating`.
 */
export function requireNamespace(
  { store }: ClusterContext,
  type: ResourceType,
  namespace: string | undefined,
  name: string,
  operation: 'CREATE' | 'UPDATE',
): void {
  if (namespace === undefined) {
    return;
  }
  const object = store.get('namespaces', '', namespace);
  if (object === undefined) {
    throw ApiError.notFound({ group: '', resource: 'namespaces' }, namespace);
  }
  if (operation === 'CREATE' && object.metadata.deletionTimestamp !== undefined) {
    const what = name === '' ? groupResourceOf(type) : `${groupResourceOf(type)} ${quote(name)}`;
    throw new ApiError(
      403,
      'Forbidden',
      `${what} is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`,
      {
        ...(name === '' ? {} : { name }),
        ...(type.group === '' ? {} : { group: type.group }),
        kind: type.resource,
        causes: [
          {
            reason: 'NamespaceTerminating',
            message: `namespace ${namespace} is being terminated`,
            field: 'metadata.namespace',
          },
        ],
      },
    );
  }
}
