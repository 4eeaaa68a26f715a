// An entry of its own for who grants rights and runs no auditor.
export { AUDITOR_NAMESPACE_RULES, AUDITOR_READ_RULES, AUDITOR_RULES } from './auditor-rules.ts';
export { REPORT_SELECTOR } from './report-labels.ts';
