import { isIP } from 'node:net';
import { dns1035LabelProblems, dnsLabelProblems, dnsSubdomainProblems } from '../../../names/index.ts';
import { valueAt } from '../../../resources/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import { portNameProblems } from '../../../resources/kind-validation/index.ts';
import type { CheckedValue } from '../../../resources/kind-validation/index.ts';
import { immutable } from './workload-validation.ts';

type Old = KubernetesObject | undefined;

const SERVICE_TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const FOR_BALANCERS = "may only be used when `type` is 'LoadBalancer'";

export function checkService(object: CheckedValue, old: Old): void {
  const spec = object.at('spec');
  const type = spec.at('type').text;
  const ports = spec.at('ports');
  const isHeadless = spec.at('clusterIP').text === 'None';
  if (ports.isEmpty && !isHeadless && type !== 'ExternalName') {
    ports.required();
  }
  if (isHeadless && (type === 'LoadBalancer' || type === 'NodePort')) {
    spec.at('clusterIP').named('spec.clusterIPs[0]').invalid(`may not be set to 'None' for ${type} services`);
  }
  if (type === 'ExternalName') {
    const name = spec.at('externalName');
    if (name.needed()) {
      dnsSubdomainProblems(name.text.replace(/\.$/, '')).forEach((problem) => name.invalid(problem));
    }
  }
  checkServicePorts(ports, type);
  spec.at('selector').labels();
  spec.at('sessionAffinity').oneOf(['ClientIP', 'None']);
  const timeout = spec.at('sessionAffinityConfig').at('clientIP').at('timeoutSeconds');
  timeout.between(1, 86_400);
  checkAddresses(spec, type);
  spec.at('type').oneOf(SERVICE_TYPES);
  checkTraffic(spec, type);
  for (const field of ['allocateLoadBalancerNodePorts', 'loadBalancerClass']) {
    if (type !== 'LoadBalancer' && spec.at(field).isSet) {
      spec.at(field).forbidden(FOR_BALANCERS);
    }
  }
  if (old !== undefined) {
    checkServiceUpdate(spec, old);
  }
}

function checkServicePorts(ports: CheckedValue, type: string): void {
  const seen = new Set<string>();
  for (const port of ports.items) {
    const [name, number, protocol] = [port.at('name'), port.at('port'), port.at('protocol')];
    if (ports.items.length > 1 && name.text === '') {
      name.required();
    }
    name.follows(dnsLabelProblems);
    number.port();
    protocol.oneOf(PROTOCOLS);
    port.at('targetPort').portOrName();
    if (type === 'ClusterIP' && (port.at('nodePort').number ?? 0) !== 0) {
      port.at('nodePort').forbidden("may not be used when `type` is 'ClusterIP'");
    }
    const key = `${protocol.text} ${number.number}`;
    if (seen.has(key)) {
      port.duplicateStruct({
        Name: '',
        Protocol: protocol.text,
        AppProtocol: null,
        Port: number.number,
        TargetPort: 0,
        NodePort: 0,
      });
    }
    seen.add(key);
  }
  ports.uniqueNames();
}

function checkAddresses(spec: CheckedValue, type: string): void {
  if (type !== 'ExternalName') {
    const one = spec.at('clusterIP');
    const all = spec.at('clusterIPs').items;
    const addresses = all.length > 0 || one.text === '' ? all : [one.named('spec.clusterIPs[0]')];
    for (const address of addresses.filter(({ text }) => text !== 'None')) {
      address.ip();
    }
  }
  for (const address of spec.at('externalIPs').items) {
    address.ip();
  }
  for (const family of spec.at('ipFamilies').items) {
    family.oneOf(['IPv4', 'IPv6']);
  }
  spec.at('ipFamilyPolicy').oneOf(['PreferDualStack', 'RequireDualStack', 'SingleStack']);
}

function checkTraffic(spec: CheckedValue, type: string): void {
  const external = spec.at('externalTrafficPolicy');
  const isExternal = type === 'LoadBalancer' || type === 'NodePort' || !spec.at('externalIPs').isEmpty;
  if (external.isSet) {
    if (isExternal) {
      external.oneOf(['Cluster', 'Local']);
    } else {
      external.invalid('may only be set for externally-accessible services');
    }
  }
  spec.at('internalTrafficPolicy').oneOf(['Cluster', 'Local']);
}

/** The address of a Service is immutable, unless the Service is or was an ExternalName. */
function checkServiceUpdate(spec: CheckedValue, old: KubernetesObject): void {
  const before = valueAt(old, 'spec', 'clusterIPs');
  const isExternalName = [spec.at('type').text, valueAt(old, 'spec', 'type')].includes('ExternalName');
  const [was] = Array.isArray(before) ? (before as readonly unknown[]) : [];
  const now = spec.at('clusterIPs').items[0] ?? spec.at('clusterIP');
  if (!isExternalName && was !== undefined && now.isSet && now.value !== was) {
    spec.at('clusterIPs').named('spec.clusterIPs[0]').invalid('may not change once set');
  }
}

export function checkIngress(object: CheckedValue): void {
  const spec = object.at('spec');
  const backend = spec.at('defaultBackend');
  if (!backend.isSet && spec.at('rules').isEmpty) {
    spec.invalid('either `defaultBackend` or `rules` must be specified', null);
  }
  if (backend.isSet) {
    checkBackend(backend);
  }
  for (const rule of spec.at('rules').items) {
    checkHost(rule.at('host'));
    const http = rule.at('http');
    if (http.isSet) {
      http.at('paths').needed();
      http.at('paths').items.forEach(checkIngressPath);
    }
  }
  for (const tls of spec.at('tls').items) {
    tls.at('hosts').items.forEach(checkHost);
    tls.at('secretName').follows(dnsSubdomainProblems);
  }
  spec.at('ingressClassName').follows(dnsSubdomainProblems);
}

function checkHost(host: CheckedValue): void {
  if (isIP(host.text) !== 0) {
    host.invalid('must be a DNS name, not an IP address');
  } else if (host.text.includes('*')) {
    if (!host.text.startsWith('*.') || dnsSubdomainProblems(host.text.slice(2)).length > 0) {
      host.invalid(
        String.raw`a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
      );
    }
  } else {
    host.follows(dnsSubdomainProblems);
  }
}

/** Sequences that paths must not contain, because proxies normalize them in different ways. */
const BAD_SEQUENCES = ['//', '/./', '/../', '%2f', '%2F'];
const BAD_ENDS = ['/..', '/.'];

function checkIngressPath(path: CheckedValue): void {
  const [type, text] = [path.at('pathType'), path.at('path')];
  if (!type.isSet) {
    type.required('pathType must be specified');
  } else if (type.text === 'Exact' || type.text === 'Prefix') {
    if (!text.text.startsWith('/')) {
      text.invalid('must be an absolute path', text.text);
    }
    for (const sequence of BAD_SEQUENCES.filter((sequence) => text.text.includes(sequence))) {
      text.invalid(`must not contain '${sequence}'`);
    }
    for (const end of BAD_ENDS.filter((end) => text.text.endsWith(end))) {
      text.invalid(`cannot end with '${end}'`);
    }
  } else if (type.text === 'ImplementationSpecific') {
    if (text.text !== '' && !text.text.startsWith('/')) {
      text.invalid('must be an absolute path');
    }
  } else {
    type.oneOf(['Exact', 'ImplementationSpecific', 'Prefix']);
  }
  checkBackend(path.at('backend'));
}

function checkBackend(backend: CheckedValue): void {
  const [service, resource] = [backend.at('service'), backend.at('resource')];
  if (service.isSet && resource.isSet) {
    backend.invalid('cannot set both resource and service backends', '');
  } else if (resource.isSet) {
    resource.at('kind').needed();
    resource.at('name').needed();
  } else if (service.isSet) {
    checkServiceBackend(backend, service);
  } else {
    backend.invalid('resource or service backend is required', '');
  }
}

function checkServiceBackend(backend: CheckedValue, service: CheckedValue): void {
  if (service.at('name').needed()) {
    service.at('name').follows(dns1035LabelProblems);
  }
  const [name, number] = [service.at('port').at('name'), service.at('port').at('number')];
  if (name.text !== '' && (number.number ?? 0) !== 0) {
    backend.invalid('cannot set both port name & port number', '');
  } else if (name.text !== '') {
    portNameProblems(name.text).forEach((problem) => name.invalid(problem));
  } else if ((number.number ?? 0) === 0) {
    backend.required('port name or number is required');
  } else {
    number.port();
  }
}

export function checkIngressClass(object: CheckedValue, old: Old): void {
  const controller = object.at('spec').at('controller');
  if (old !== undefined) {
    immutable(controller, valueAt(old, 'spec', 'controller'));
    return;
  }
  if (controller.needed()) {
    const slash = controller.text.indexOf('/');
    const domain = controller.text.slice(0, slash);
    if (slash === -1 || domain === '' || slash === controller.text.length - 1) {
      controller.invalid('must be a domain-prefixed path (such as "acme.io/foo")');
    } else {
      dnsSubdomainProblems(domain).forEach((problem) => controller.invalid(problem, domain));
    }
  }
}

export function checkEndpoints(object: CheckedValue): void {
  for (const subset of object.at('subsets').items) {
    const addresses = [...subset.at('addresses').items, ...subset.at('notReadyAddresses').items];
    if (addresses.length === 0) {
      subset.required('must specify `addresses` or `notReadyAddresses`');
    }
    for (const address of addresses.map((entry) => entry.at('ip'))) {
      address.ip();
      if (isIP(address.text) === 0) {
        address.invalid('must be a valid IP address');
      }
    }
    for (const port of subset.at('ports').items) {
      port.at('port').port();
      port.at('protocol').oneOf(PROTOCOLS);
    }
  }
}

export function checkEndpointSlice(object: CheckedValue, old: Old): void {
  const type = object.at('addressType');
  if (type.needed()) {
    type.oneOf(['FQDN', 'IPv4', 'IPv6']);
  }
  for (const endpoint of object.at('endpoints').items) {
    endpoint.at('addresses').needed('must contain at least 1 address');
    for (const address of endpoint.at('addresses').items) {
      if (type.text === 'IPv4' || type.text === 'IPv6') {
        address.ip();
        const expected = type.text === 'IPv4' ? 4 : 6;
        const isOther = old === undefined && isIP(address.text) !== 0 && isIP(address.text) !== expected;
        if (isOther) {
          address.invalid(`must be an ${type.text} address`);
        }
      }
    }
  }
  for (const port of object.at('ports').items) {
    port.at('port').port();
    port.at('protocol').oneOf(PROTOCOLS);
  }
  if (old !== undefined) {
    immutable(type, old['addressType']);
  }
}
