import { BOOL, DYN, listOf, mapOf, STRING, struct } from './type.ts';
import type { CelType } from './type.ts';

/** The type of `request` in policies and match conditions. */
export const ADMISSION_REQUEST = 'kubernetes.AdmissionRequest';

const IDS = { group: STRING, version: STRING };
const STRING_LIST = listOf(STRING);

/** {@link ADMISSION_REQUEST} and its nested types by name: an AdmissionReview request without its objects. */
export const ADMISSION_REQUEST_STRUCTS: Readonly<Record<string, Readonly<Record<string, CelType>>>> = {
  'kubernetes.GroupVersionKind': { ...IDS, kind: STRING },
  'kubernetes.GroupVersionResource': { ...IDS, resource: STRING },
  'kubernetes.UserInfo': { username: STRING, uid: STRING, groups: STRING_LIST, extra: mapOf(STRING, STRING_LIST) },
  [ADMISSION_REQUEST]: {
    kind: struct('kubernetes.GroupVersionKind'),
    resource: struct('kubernetes.GroupVersionResource'),
    subResource: STRING,
    requestKind: struct('kubernetes.GroupVersionKind'),
    requestResource: struct('kubernetes.GroupVersionResource'),
    requestSubResource: STRING,
    name: STRING,
    namespace: STRING,
    operation: STRING,
    userInfo: struct('kubernetes.UserInfo'),
    dryRun: BOOL,
    options: DYN,
  },
};
