// Looks at pages of a dashboard in Chromium, as a reader does: light and dark, on a desk and
// on a telephone, and without scripts. The address is what spillway dashboard prints; the
// paths follow. A page fails by an error or a report of the browser, a violation that axe
// finds, or a line that is wider than the telephone.
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import puppeteer from 'puppeteer-core'

const here = dirname(fileURLToPath(import.meta.url))
const axe = readFileSync(join(here, 'node_modules/axe-core/axe.min.js'), 'utf8')
const shots = process.env.SITE_SHOTS // a folder for pictures, if they are wanted
const [address, ...paths] = process.argv.slice(2)
const base = new URL(address).origin
const problems = []
const desk = { width: 1280, height: 900 }
const phone = { width: 390, height: 844, isMobile: true, hasTouch: true }
const looks = [
  { name: 'desk-light', viewport: desk, theme: 'light', scripts: true },
  { name: 'desk-dark', viewport: desk, theme: 'dark', scripts: true },
  { name: 'telephone', viewport: phone, theme: 'light', scripts: true },
  { name: 'without-scripts', viewport: desk, theme: 'light', scripts: false },
]
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
})
for (const look of looks) {
  const context = await browser.createBrowserContext()
  const tab = await context.newPage()
  await tab.setViewport(look.viewport)
  await tab.setJavaScriptEnabled(look.scripts)
  await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: look.theme }])
  let at = '/'
  const complain = (text) => problems.push(`${at} (${look.name}): ${text}`)
  tab.on('pageerror', (error) => complain(`script: ${error.message}`))
  tab.on('console', (message) => ['error', 'warn'].includes(message.type()) && complain(`console: ${message.text()}`))
  await tab.goto(address, { waitUntil: 'load' })
  for (at of ['/', ...paths]) {
    await tab.goto(base + at, { waitUntil: 'load' })
    if (shots) {
      mkdirSync(shots, { recursive: true })
      await tab.screenshot({ path: join(shots, `${at.replaceAll(/[^a-z0-9]+/g, '_')}-${look.name}.png`) })
    }
    const wide = look.viewport === phone && (await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth))
    if (wide > 0) complain(`${wide} pixels wider than the screen`)
    if (!look.scripts) continue
    const session = await tab.createCDPSession() // the page's own policy refuses scripts from elsewhere
    await session.send('Page.enable')
    const { frameTree } = await session.send('Page.getFrameTree')
    const { executionContextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id })
    await session.send('Runtime.evaluate', { expression: axe, contextId: executionContextId })
    const { result } = await session.send('Runtime.evaluate', {
      expression: "axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify(r.violations.map((v) => v.id + ': ' + v.help + ' (' + v.nodes.length + ': ' + v.nodes[0].target.join(' ') + ')')))",
      contextId: executionContextId, awaitPromise: true, returnByValue: true,
    })
    for (const text of JSON.parse(result.value)) complain(`axe: ${text}`)
  }
  await context.close()
}
await browser.close()
for (const problem of problems) console.error(problem)
console.log(`${paths.length + 1} pages in ${looks.length} looks, ${problems.length} problems`)
process.exitCode = problems.length > 0 ? 1 : 0
