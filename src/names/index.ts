export {
  dns1035LabelProblems,
  dnsLabelProblems,
  dnsSubdomainProblems,
  labelValueProblems,
  MAX_LABEL_LENGTH,
  MAX_SUBDOMAIN_LENGTH,
  pathSegmentPrefixProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
} from './name-rules.ts';
