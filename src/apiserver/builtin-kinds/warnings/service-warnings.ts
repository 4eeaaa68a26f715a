// Warnings about Services and the addresses of their endpoints.
import { textOf, valueAt } from '../../../values/index.ts';
import { addressWarnings, cidrWarnings } from '../../../resources/kind-validation/index.ts';
import { listAt, placedItems } from './fields.ts';

const HINTS = 'service.kubernetes.io/topology-aware-hints';
const MODE = 'service.kubernetes.io/topology-mode';

export function serviceWarnings(service: unknown): readonly string[] {
  const spec = valueAt(service, 'spec');
  const isExternalName = valueAt(spec, 'type') === 'ExternalName';
  const hasExternalAddresses = listAt(spec, 'externalIPs').length > 0;
  const isAddressed = !isHeadless(spec) && !isExternalName;
  return [
    ...(valueAt(service, 'metadata', 'annotations', HINTS) === undefined
      ? []
      : [`annotation ${HINTS} is deprecated, please use ${MODE} instead`]),
    ...(isAddressed ? addressesOf(spec, 'clusterIPs') : []),
    ...(isHeadless(spec) ? headlessWarnings(spec) : []),
    ...addressesOf(spec, 'externalIPs'),
    ...addressWarnings(valueAt(spec, 'loadBalancerIP'), 'spec.loadBalancerIP'),
    ...listAt(spec, 'loadBalancerSourceRanges').flatMap((range, index) =>
      cidrWarnings(range, `spec.loadBalancerSourceRanges[${index}]`),
    ),
    ...(isExternalName && hasExternalAddresses ? ['spec.externalIPs is ignored when spec.type is "ExternalName"'] : []),
    ...(!isExternalName && textOf(valueAt(spec, 'externalName')) !== ''
      ? ['spec.externalName is ignored when spec.type is not "ExternalName"']
      : []),
  ];
}

function isHeadless(spec: unknown): boolean {
  return valueAt(spec, 'type') === 'ClusterIP' && valueAt(spec, 'clusterIP') === 'None';
}

function headlessWarnings(spec: unknown): readonly string[] {
  return [
    ...(textOf(valueAt(spec, 'loadBalancerIP')) === '' ? [] : ['spec.loadBalancerIP is ignored for headless services']),
    ...(listAt(spec, 'externalIPs').length === 0 ? [] : ['spec.externalIPs is ignored for headless services']),
    ...(valueAt(spec, 'sessionAffinity') === 'None' ? [] : ['spec.SessionAffinity is ignored for headless services']),
  ];
}

function addressesOf(spec: unknown, field: string): readonly string[] {
  return listAt(spec, field).flatMap((address, index) => addressWarnings(address, `spec.${field}[${index}]`));
}

export function endpointsWarnings(endpoints: unknown): readonly string[] {
  return placedItems(valueAt(endpoints, 'subsets'), 'subsets').flatMap(({ path, value }) =>
    ['addresses', 'notReadyAddresses'].flatMap((list) =>
      placedItems(value[list], `${path}.${list}`).flatMap((one) => addressWarnings(one.value['ip'], `${one.path}.ip`)),
    ),
  );
}

export function endpointSliceWarnings(slice: unknown): readonly string[] {
  if (valueAt(slice, 'addressType') === 'FQDN') {
    return ['spec.addressType: FQDN endpoints are deprecated'];
  }
  return placedItems(valueAt(slice, 'endpoints'), 'endpoints').flatMap(({ path, value }) =>
    listAt(value, 'addresses').flatMap((address, index) => addressWarnings(address, `${path}.addresses[${index}]`)),
  );
}
