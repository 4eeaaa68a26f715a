// What the versions of a policy say of requests that were recorded, as they were sent.
import { apiVersionOf, type GroupVersionResource, type KubernetesObject } from '../../resources/index.ts';
import { asJson, type JsonObject, objectIn, textOf } from '../../values/index.ts';
import { changeOf } from './change.ts';
import { ChangeGroups } from './change-groups.ts';
import type { PreviewState } from './compared-verdicts.ts';

/** Requests that are judged at once: far fewer than a pool holds. */
const MAX_UNDER_WAY = 64;

/** A request of an API server. */
export interface RecordedRequest {
  /** The AdmissionReview, as JSON text. */
  readonly review: Uint8Array;
  /** Its `request`. */
  readonly request: JsonObject;
}

/** Compares the verdicts on requests, with the operation, the user and the old object that they have. */
export async function compareRequests(
  { sides, host }: Pick<PreviewState, 'sides' | 'host'>,
  requests: readonly RecordedRequest[],
  signal?: AbortSignal,
): Promise<ChangeGroups> {
  const changes = new ChangeGroups();
  const policies = [...sides.requestIds('old'), ...sides.requestIds('new')];
  const open = requests[Symbol.iterator]();
  const judgeSome = async (): Promise<void> => {
    for (const { review, request } of open) {
      signal?.throwIfAborted();
      const resource = resourceOf(request);
      const object = objectOf(request, resource);
      const verdicts = await host.evaluate({ object, resource, review }, { policies });
      const [before, after] = [sides.requestVerdict('old', verdicts), sides.requestVerdict('new', verdicts)];
      const operation = textOf(request['operation']);
      changes.add({ subject: 'requests', change: changeOf(before, after), object, resource, before, after, operation });
    }
  };
  await Promise.all(Array.from({ length: MAX_UNDER_WAY }, judgeSome));
  return changes;
}

function resourceOf(request: JsonObject): GroupVersionResource {
  const { group, version, resource } = objectIn(request, 'resource');
  return { group: textOf(group), version: textOf(version), resource: textOf(resource) };
}

/** What the request is about, with the name that it has: objects of subresources have none. */
function objectOf(request: JsonObject, resource: GroupVersionResource): JsonObject {
  const { object, oldObject } = { object: objectIn(request, 'object'), oldObject: objectIn(request, 'oldObject') };
  const given = Object.keys(object).length > 0 ? object : oldObject;
  const { name, namespace, ...metadata } = objectIn(given, 'metadata') as Partial<KubernetesObject['metadata']>;
  const generated = metadata.generateName === undefined ? '' : `${metadata.generateName}*`;
  const place = textOf(request['namespace']) || namespace;
  const kind = textOf(objectIn(request, 'kind')['kind']);
  const subresource = textOf(request['subResource']);
  return {
    ...given,
    apiVersion: apiVersionOf(resource),
    kind: subresource === '' ? kind : `${kind} (${subresource})`,
    metadata: asJson({
      ...metadata,
      name: name ?? (textOf(request['name']) || generated),
      ...(place === undefined ? {} : { namespace: place }),
    }),
  };
}
