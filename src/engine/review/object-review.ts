import { generatedName, userNameOf } from './admission-review.ts';
import type { AdmissionFacts, Requester, Review, ReviewTarget } from './admission-review.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import type { GroupVersionKind, GroupVersionResource } from '../../resources/index.ts';
import { textOf, valueAt } from '../../values/index.ts';

/** Nobody that policies could know. */
const NO_USER: JsonObject = { username: '', groups: [] };
const NO_UID = '00000000-0000-0000-0000-000000000000';

/**
 * A request for an existing object, not sent by an API server. Fields are those of AdmissionRequest
 * (`admission.k8s.io/v1`).
 */
export interface ObjectRequest {
  readonly uid: string;
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly requestKind?: GroupVersionKind;
  readonly requestResource?: GroupVersionResource;
  readonly name: string;
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly userInfo: JsonObject;
  readonly object?: JsonObject;
  readonly oldObject?: JsonObject;
  /** Default: false. */
  readonly dryRun?: boolean;
  readonly options?: JsonObject;
}

/** A review of existing objects. JSON text is written only for guests that read it. */
export class ObjectReview implements Review {
  readonly uid: string;
  readonly admission: AdmissionFacts;
  readonly target: ReviewTarget;
  readonly #request: ObjectRequest;
  #requestJson: Buffer | undefined;

  constructor(request: ObjectRequest) {
    const { uid, kind, resource, operation, namespace } = request;
    this.uid = uid;
    this.admission = { kind, operation, ...(namespace === undefined ? {} : { namespace }) };
    this.target = {
      operation,
      resource,
      subresource: '',
      requestResource: resource,
      requestSubresource: '',
      namespace: namespace ?? '',
    };
    this.#request = request;
  }

  get requestJson(): Buffer {
    this.#requestJson ??= Buffer.from(JSON.stringify(this.#request));
    return this.#requestJson;
  }

  get object(): JsonValue | undefined {
    return this.#request.object;
  }

  get oldObject(): JsonObject | undefined {
    return this.#request.oldObject;
  }

  objectJson(field: 'object' | 'oldObject'): string | undefined {
    const object = this.#request[field];
    return isJsonObject(object) ? JSON.stringify(object) : undefined;
  }

  requester(): Requester {
    const { name, userInfo, object, dryRun = false } = this.#request;
    return { name: name || generatedName(object), user: userNameOf(userInfo), isDryRun: dryRun };
  }

  userInfo(): JsonObject {
    return this.#request.userInfo;
  }

  factsJson(): string {
    const { object: _object, oldObject: _oldObject, ...facts } = this.#request;
    return JSON.stringify(facts);
  }

  withObject(object: JsonObject): Review {
    return new ObjectReview({ ...this.#request, object });
  }
}

/**
 * The request that would update an existing object, as a dry run.
 * @param resource of its kind, in the version of the object
 */
export function updateOf(object: JsonObject, oldObject: JsonObject, resource: GroupVersionResource): ObjectRequest {
  const options: JsonObject = { kind: 'UpdateOptions', apiVersion: 'meta.k8s.io/v1' };
  return { ...creationOf(object, resource), operation: 'UPDATE', oldObject, options };
}

/**
 * The request that would create an existing object, as a dry run; its uid says that no API server sent it.
 * @param resource of its kind, in the version of the object
 */
export function creationOf(object: JsonObject, resource: GroupVersionResource, userInfo = NO_USER): ObjectRequest {
  const name = textOf(valueAt(object, 'metadata', 'name'));
  const namespace = textOf(valueAt(object, 'metadata', 'namespace'));
  const kind = { group: resource.group, version: resource.version, kind: textOf(object['kind']) };
  return {
    uid: NO_UID,
    kind,
    resource,
    requestKind: kind,
    requestResource: resource,
    name,
    ...(namespace === '' ? {} : { namespace }),
    operation: 'CREATE',
    userInfo,
    object,
    dryRun: true,
    options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
  };
}
