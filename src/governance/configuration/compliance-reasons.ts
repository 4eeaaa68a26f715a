// Reasons of OCM: of related objects, and of the conditions of object templates.

/** The result of an object: the reason in `status.relatedObjects`. */
export const REASONS = {
  /** musthave: the object is as specified. */
  found: 'Resource found as expected',
  /** musthave: the object differs from its template. */
  mismatch: 'Resource found but does not match',
  /** musthave: the object does not exist. */
  notFound: 'Resource not found but should exist',
  /** mustnothave: the object exists. */
  unwanted: 'Resource found but should not exist',
  /** mustnothave: the object does not exist. */
  absent: 'Resource not found as expected',
  created: 'K8s creation success',
  updated: 'K8s update success',
  deleted: 'K8s deletion success',
  creationFailed: 'K8s creation error',
  deletionFailed: 'K8s deletion error',
  /** The object cannot be compared, updated or created again. */
  updateFailed: 'K8s update template error',
  /** The API server did not answer with the object. */
  readFailed: 'api error',
  /** The kind is unknown to the API server. */
  unknownKind: 'K8s error',
  /** A template has no apiVersion or no kind. */
  invalidDefinition: 'K8s decode object definition error',
  /** A namespaced object has no namespace. */
  noNamespace: 'K8s missing namespace',
  namespaceSelector: 'namespaceSelector error',
  objectSelector: 'objectSelector error',
  templateFailed: 'Error processing template',
  noTemplates: 'No object templates',
} as const;

/** Follows {@link REASONS.created} when the template has a status, which is compared on the next evaluation. */
export const STATUS_UNCHECKED = ', status unchecked';

/** How the results of objects with one reason are reported. */
export interface ReasonText {
  /** The reason of the condition. */
  readonly reason: string;
  /** What a message says of the objects. */
  readonly phrase: string;
}

/** The reasons whose objects are reported together, in the order of messages. All others have messages of their own. */
export const REASON_TEXTS: ReadonlyMap<string, ReasonText> = new Map([
  [REASONS.found, { reason: 'K8s `must have` object already exists', phrase: 'found as specified' }],
  [REASONS.created, { reason: REASONS.created, phrase: 'was created successfully' }],
  [REASONS.updated, { reason: REASONS.updated, phrase: 'was updated successfully' }],
  [REASONS.deleted, { reason: REASONS.deleted, phrase: 'was deleted successfully' }],
  [REASONS.notFound, { reason: 'K8s does not have a `must have` object', phrase: 'not found' }],
  [REASONS.mismatch, { reason: 'K8s does not have a `must have` object', phrase: 'found but not as specified' }],
  [REASONS.absent, { reason: 'K8s `must not have` object already missing', phrase: 'missing as expected' }],
  [REASONS.unwanted, { reason: 'K8s has a `must not have` object', phrase: 'found' }],
]);
