"""The stylesheet of reports."""

STYLE = """
:root { --ink: #1b2430; --dim: #5c6773; --line: #d8dee6; --paper: #fff; --panel: #f5f7fa;
  --blue: #2563af; --green: #1a7f4b; --red: #b3261e; --amber: #b26a00; }
* { box-sizing: border-box; }
html { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
body { margin: 0; color: var(--ink); background: var(--paper);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main, footer { max-width: 1180px; margin: 0 auto; padding: 0 28px; }
h1 { font-size: 26px; line-height: 1.25; margin: 32px 0 12px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 36px 0 10px; padding-bottom: 5px; border-bottom: 2px solid var(--line); }
p { margin: 0 0 8px; max-width: 78ch; overflow-wrap: anywhere; }
.lead { font-size: 17px; font-weight: 600; padding: 10px 14px; border-left: 5px solid var(--blue);
  background: var(--panel); max-width: none; }
.lead.good { border-color: var(--green); }
.lead.bad { border-color: var(--red); }
.note { color: var(--dim); font-size: 13px; margin-top: 8px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; min-width: 40%; }
th, td { padding: 5px 12px; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }
th { font-weight: 600; color: var(--dim); white-space: nowrap; background: var(--panel); vertical-align: bottom; }
.right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.chosen { font-weight: 700; color: var(--green); }
.bad-cell { color: var(--red); font-weight: 600; }
.dim { color: var(--dim); }
.name { white-space: nowrap; }
.heat th { white-space: normal; min-width: 84px; font-size: 12px; hyphens: auto; }
.heat td { border: 1px solid #fff; padding: 3px 10px; }
.heat td:first-child { white-space: nowrap; }
.bar { display: inline-block; position: relative; width: 190px; height: 13px; background: #e6eaf0; border-radius: 2px;
  overflow: hidden; vertical-align: -2px; margin-right: 8px; }
.bar span { position: absolute; top: 0; bottom: 0; }
.bar .kept { background: #7b9cc9; }
.bar .more { background: var(--blue); }
.bar .less { background: repeating-linear-gradient(45deg, #c3cad4 0 3px, #e6eaf0 3px 6px); }
.bars td { white-space: nowrap; padding: 3px 12px; font-variant-numeric: tabular-nums; }
.key .bar { width: 22px; margin-left: 14px; margin-right: 5px; }
pre { background: var(--panel); padding: 12px 16px; font-size: 13px; overflow-x: auto; white-space: pre-wrap; }
ol { margin: 0; padding-left: 26px; } li { margin: 4px 0; max-width: 90ch; }
footer { color: var(--dim); font-size: 12px; padding-top: 26px; padding-bottom: 30px; }
@media print {
  @page { margin: 14mm; size: A4 landscape; }
  body { font-size: 10.5pt; } main, footer { max-width: none; padding: 0; }
  h1 { margin-top: 0; font-size: 18pt; } h2 { break-after: avoid; font-size: 13pt; margin-top: 18pt; }
  .wide { overflow: visible; } table { font-size: 8.5pt; } th, td { padding: 3px 6px; }
  thead { display: table-header-group; } tr { break-inside: avoid; } .bar { width: 120px; }
  .heat th { min-width: 0; font-size: 7pt; } .heat td { padding: 2px 5px; }
}
"""
