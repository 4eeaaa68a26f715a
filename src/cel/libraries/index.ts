import type { Library } from '../model/library.ts';
import { AUTHORIZER_LIBRARY, AUTHORIZER_SELECTORS_LIBRARY } from './authorizer.ts';
import { CIDR_LIBRARY } from './cidr.ts';
import { FORMAT_LIBRARY } from './format.ts';
import { IP_LIBRARY } from './ip.ts';
import { JSON_PATCH_LIBRARY } from './jsonpatch.ts';
import { LIST_EXTENSIONS_LIBRARY } from './list-extensions.ts';
import { LIST_INCLUDES_LIBRARY, LISTS_LIBRARY } from './lists.ts';
import { QUANTITY_LIBRARY } from './quantity.ts';
import { REGEX_LIBRARY } from './regex.ts';
import { SEMVER_LIBRARY } from './semver.ts';
import { SETS_LIBRARY } from './sets.ts';
import { STRING_FORMAT_LIBRARY, STRINGS_LIBRARY } from './strings.ts';
import { URL_LIBRARY } from './url.ts';

export {
  AuthorizerValue,
  type AuthorizationAnswer,
  type AuthorizationRequest,
  type AuthorizationUser,
  type CelAuthorizer,
} from './authorizer-values.ts';
export { AUTHORIZER, RESOURCE_CHECK } from './authorizer.ts';
export { checkFormat } from './format-check.ts';
export { libraryTable, type OverloadRow } from './library-table.ts';

/** Libraries of all Kubernetes versions, in the order of the documentation. */
export const KUBERNETES_LIBRARIES: readonly Library[] = [
  STRINGS_LIBRARY,
  STRING_FORMAT_LIBRARY,
  LISTS_LIBRARY,
  LIST_EXTENSIONS_LIBRARY,
  LIST_INCLUDES_LIBRARY,
  SETS_LIBRARY,
  REGEX_LIBRARY,
  URL_LIBRARY,
  QUANTITY_LIBRARY,
  IP_LIBRARY,
  CIDR_LIBRARY,
  FORMAT_LIBRARY,
  SEMVER_LIBRARY,
  AUTHORIZER_LIBRARY,
  AUTHORIZER_SELECTORS_LIBRARY,
];

/** Additional libraries of mutating policies. */
export const MUTATION_LIBRARIES: readonly Library[] = [JSON_PATCH_LIBRARY];

/** The libraries of an API server of version 1.`kubernetesMinor`. */
export function librariesFor(kubernetesMinor: number): readonly Library[] {
  return KUBERNETES_LIBRARIES.filter(
    ({ since, until }) => (since ?? 0) <= kubernetesMinor && (until === undefined || kubernetesMinor < until),
  );
}
