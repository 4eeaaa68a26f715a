// The parts of a ConfigurationPolicy's spec that evaluation needs.
import type { JsonObject } from '../../values/index.ts';
import type { ListKey } from './list-keys.ts';

/** How an object must relate to its template. */
export type ComplianceType = 'musthave' | 'mustonlyhave' | 'mustnothave';
/** How an existing object is compared with its template. */
export type ComparisonType = Exclude<ComplianceType, 'mustnothave'>;
export type RecreateOption = 'None' | 'IfRequired' | 'Always';
export type RecordDiff = 'Log' | 'InStatus' | 'None';

/** An entry of `object-templates`, of a shape that the kind's schema has checked. */
export interface ObjectTemplate {
  /** In any of the capitalisations that the schema accepts. */
  readonly complianceType: string;
  /** Default: the complianceType. */
  readonly metadataComplianceType?: string;
  /** Default: None. */
  readonly recreateOption?: RecreateOption;
  /** Default: InStatus, except for objects that may contain secrets. */
  readonly recordDiff?: RecordDiff;
  /** A `metav1.LabelSelector`. Ignored if the definition has a name. */
  readonly objectSelector?: object;
  /** Our extension: lists whose items are identified by another field than `name`. */
  readonly listKeys?: readonly ListKey[];
  readonly objectDefinition: JsonObject;
}

/** The compliance type in lower case. */
export function complianceTypeOf(text: string): ComplianceType {
  const lower = text.toLowerCase();
  return lower === 'mustonlyhave' || lower === 'mustnothave' ? lower : 'musthave';
}

/** How existing objects are compared with the template: the subset match of musthave also finds what must not exist. */
export function comparisonTypeOf(text: string): ComparisonType {
  return complianceTypeOf(text) === 'mustonlyhave' ? 'mustonlyhave' : 'musthave';
}
