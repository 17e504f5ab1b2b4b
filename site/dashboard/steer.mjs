// Does something to an object by the keyboard alone, as a person does who has no mouse: from
// its page to what can be done, the reason, and back; and prints what the pages say. The
// address is what spillway dashboard prints; the page, the act and the reason follow, and
// "without-scripts" of a browser that runs none. What is forbidden is said and not tried.
import { audit, end, found, launch, open, walk } from './browser.mjs'

const [address, path, act, reason, without] = process.argv.slice(2)
const browser = await launch()
const where = () => `${path} ${act}`
const tab = await open(browser, address, { scripts: !without }, where)
await tab.goto(new URL(path, address).href, { waitUntil: 'load' })

const leads = () => tab.waitForNavigation({ waitUntil: 'load' })
const text = (selector) => tab.$$eval(selector, (all) => all.map((e) => e.textContent.trim()))
await walk(tab, where, act, (f) => f.name === 'A' && f.text.split(' ')[0] === act)
await Promise.all([leads(), tab.keyboard.press('Enter')])
if (!without) await audit(tab, where())
for (const line of await text('main > p')) console.log(line)
const denied = await text('#denied')
if (denied.length > 0) {
  if (!(await tab.$('form[method=post] button[disabled]'))) found.other.push(`${where()}: the button works, although it is forbidden`)
  console.log(`Disabled: ${denied[0]}`)
} else {
  await walk(tab, where, 'the reason', (f) => f.field === 'reason')
  await tab.keyboard.type(reason)
  await walk(tab, where, 'the button', (f) => f.name === 'BUTTON' && f.text === act)
  await Promise.all([leads(), tab.keyboard.press('Enter')])
  for (const line of await text('main > [role=status], main > [role=alert]')) console.log(line)
  if (!without) await audit(tab, where())
}
await end(browser, `${act} by the keyboard${without ? ', without scripts' : ''}`)
